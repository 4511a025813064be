"""The preview of an upgrade in words."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from pulsar_advisor.recommendation.upgrade import UpgradeRequest
from pulsar_advisor.reporting.html import render_html
from pulsar_advisor.reporting.markdown import render_markdown
from pulsar_advisor.reporting.upgrade import UpgradeSection, upgrade_lines, upgrade_section
from unit.recommendation.test_upgrade import preview
from unit.reporting.skewed import skewed_inputs

WIDTH = 80


@cache
def section() -> UpgradeSection:
    return upgrade_section(preview())


def test_the_first_line_says_which_strategies_take_over() -> None:
    assert section().headline == (
        "Upgrading Pulsar 4.0.8 to 5.0.1 replaces ThresholdShedder with LeastLongTermMessageRate by AvgShedder with "
        "AvgShedder"
    )


def test_where_all_values_are_set_nothing_is_to_paste() -> None:
    staying = tuple(one for one in preview().settings if not one.changes)
    update = {"pins": {}, "pinned": None, "settings": staying, "after": preview().before}
    found = upgrade_section(preview().model_copy(update=update))
    assert found.headline == "Upgrading Pulsar 4.0.8 to 5.0.1 changes no setting of the load balancer"
    assert "To keep" not in "\n".join(upgrade_lines(found, WIDTH))


def test_a_placement_that_the_release_replaces_is_in_the_first_line_though_no_setting_changes() -> None:
    after = preview().before.model_copy(update={"placement": "RoundRobinBrokerSelector"})
    staying = tuple(one for one in preview().settings if not one.changes)
    update = {"pins": {}, "pinned": None, "settings": staying, "after": after}
    found = upgrade_section(preview().model_copy(update=update))
    assert found.headline.endswith(
        "changes no setting of the load balancer, but replaces ThresholdShedder with LeastLongTermMessageRate by "
        "ThresholdShedder with RoundRobinBrokerSelector"
    )


def test_each_setting_says_what_decides_it_and_where_the_default_is_from() -> None:
    (max_unload,) = [one for one in section().changing if one.key == "maxUnloadPercentage"]
    assert (max_unload.before, max_unload.after) == ("0.2", "0.5")
    assert max_unload.why == "never set; default 5.0.1"
    (minimum,) = section().staying
    assert (minimum.key, minimum.why) == (
        "loadBalancerBundleUnloadMinThroughputThreshold",
        "set in the configuration",
    )


def test_a_deprecated_key_that_still_counts_is_not_to_be_removed() -> None:
    staying = upgrade_section(preview(loadBalancerBandwithInResourceWeight="0.5")).staying
    (weight,) = [one for one in staying if one.key == "loadBalancerBandwithInResourceWeight"]
    assert weight.why == "set in the configuration, but deprecated in 5.0.1"


def test_the_lines_to_paste_are_whole_on_any_terminal() -> None:
    lines = list(upgrade_lines(section(), WIDTH))
    line = "loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
    assert line in lines
    assert any("does what 4.0.8 does today" in one for one in lines)


def test_every_case_has_its_line() -> None:
    assert [one.name for one in section().outlooks] == [
        "today, 4.0.8",
        "after the upgrade, 5.0.1",
        "5.0.1 with today's values",
        "after a rolling restart, 4.0.8",
        "after a rolling restart, 5.0.1",
    ]
    assert section().outlooks[0].future.unloads[0] > 0


def test_whose_placement_holds_during_the_restart_is_said_only_where_that_matters() -> None:
    sentence = "until its own restart, the leader places as 4.0.8 does"
    staying = upgrade_section(preview(request=UpgradeRequest("4.0.14", seeds=1, cycles=1)))
    (restarts,) = [one for one in section().sentences if "rolling restart" in one]
    assert sentence in restarts
    assert sentence not in " ".join(staying.sentences)


def test_a_strategy_that_is_not_modelled_is_said_in_every_form() -> None:
    found = upgrade_section(preview(loadBalancerLoadSheddingStrategy="com.example.Own"))
    assert any("could not be simulated" in sentence for sentence in found.sentences)
    assert "".join(upgrade_lines(found, WIDTH)).count("there is no shedder 'Own'") >= len(found.outlooks)


def test_whether_a_strategy_that_is_not_modelled_does_the_same_is_left_open() -> None:
    sentences = " ".join(upgrade_section(preview(loadBalancerLoadSheddingStrategy="com.example.Own")).sentences)
    assert "does the same with the lines below is unknown" in sentences
    assert "today." not in sentences


def test_a_release_newer_than_those_known_is_said_to_be_judged_as_another() -> None:
    found = upgrade_section(preview(request=UpgradeRequest("9.9.9", seeds=1, cycles=1)))
    assert found.headline.startswith("Upgrading Pulsar 4.0.8 to 9.9.9, judged as 5.0.1, replaces ThresholdShedder")
    assert found.notes[0].startswith("Pulsar 9.9.9 is newer than 5.0.1, the newest release known here")


def test_a_maintenance_release_whose_changes_are_known_is_judged_as_itself() -> None:
    found = upgrade_section(preview(request=UpgradeRequest("4.0.14", seeds=1, cycles=1)))
    assert found.headline == "Upgrading Pulsar 4.0.8 to 4.0.14 changes no setting of the load balancer"
    assert not any("no difference can show" in note for note in found.notes)


def test_releases_that_are_judged_alike_are_said_to_be() -> None:
    found = upgrade_section(preview(request=UpgradeRequest("4.1.0", seeds=1, cycles=1)))
    assert found.headline == "Upgrading Pulsar 4.0.8 to 4.1.0, judged as 4.0.8, changes no setting of the load balancer"
    assert found.notes[0] == "Pulsar 4.0.8 and 4.1.0 are both judged as 4.0.8, so no difference can show."


def test_a_missing_configuration_is_said() -> None:
    unknown = preview().model_copy(update={"configuration_known": False})
    assert any("No broker's configuration was captured" in note for note in upgrade_section(unknown).notes)


def test_a_report_has_the_section_if_a_preview_was_made() -> None:
    page = skewed_inputs().page()
    assert 'id="upgrade"' not in render_html(page)
    with_preview = replace(page, upgrade=section())
    html, markdown = render_html(with_preview), render_markdown(with_preview)
    for text in (html, markdown):
        assert "Upgrade to 5.0.1" in text
        assert "maxUnloadPercentage=0.2" in text
        assert "the range over all runs" in text  # what the ranges of its table are


def test_a_release_whose_number_begins_like_another_is_no_milestone_of_it() -> None:
    def headline(to: str, judged_as: str) -> str:
        return upgrade_section(preview().model_copy(update={"to": to, "judged_as": judged_as})).headline

    assert "to 4.0.80, judged as 4.0.8," in headline("4.0.80", "4.0.8")
    assert "judged as" not in headline("5.0.0-M1", "5.0.0")
    assert "judged as" not in headline("5.0.1", "")
