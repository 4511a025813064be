"""The sentences that matter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    ClusterState,
    IsolationPolicy,
)
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan, StepPrediction
from pulsar_advisor.planning.advice.coverage import coverage
from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.planning.advice.findings import findings as findings_of
from pulsar_advisor.planning.advice.verbs import Verbs
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.ailments import ailments
from snapshots import runtime_settings
from unit.execution.doubles import make_plan, split_step, unload_step
from unit.planning.advice.zookeeper_alone import of_extensible_zookeeper_alone
from unit.planning.conftest import MIB
from unit.planning.kinds.clusters import cluster, planned


def findings(
    state: ClusterState,
    settings: ResolvedSettings,
    plans: Sequence[Plan] = (),
    earlier: Sequence[ClusterState] = (),
    advised: Plan | None = None,
    **limits: Any,
) -> tuple[Finding, ...]:
    def plan_for(goal: Goal) -> Plan | None:
        return None if state.load_manager == "simple" else planned(state, goal, **limits)

    situation, judged = Situation.of(state, settings, earlier), coverage(state, settings.values)
    return findings_of(situation, plans, judged, Verbs(plan_for, same_options=bool(limits)), advised)


def test_where_nobody_tells_of_load_nothing_is_said_about_busy_brokers_and_small_bundles(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    found = findings(of_extensible_zookeeper_alone(state), settings)
    assert [finding.sentence for finding in found] == [
        "No broker was read, and none has published fit figures.",
        "DefaultNamespaceBundleSplitStrategyImpl can't be judged: it reads bundle_traffic, which is missing "
        "(no bundle has fit figures).",
    ]


def test_that_no_broker_listed_its_topics_is_said(state: ClusterState, settings: ResolvedSettings) -> None:
    found = findings(replace(state, missing={"topic_traffic": "topic_stats: 403"}), settings)
    assert found[0].sentence.startswith("No broker listed its loaded topics: the effect of a split is predicted")


def test_a_broker_whose_figures_fail_is_not_called_the_busiest(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.complete[0] = False
    sentences = [finding.sentence for finding in findings(state, settings)]
    assert sentences[0].startswith(
        "Of the brokers that could be judged, c:8080 is the busiest broker at 20.0% (CPU); the mean is 15.0%."
    )
    assert not [sentence for sentence in sentences if "could not be judged" in sentence], "the coverage says so"


def test_beside_a_broker_without_bundles_that_was_set_aside_none_is_called_the_busiest_of_all(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.bundles.owner[4] = 0
    state.brokers.usage[2, CPU] = 380.0
    state.brokers.complete[2] = False
    assert not coverage(state, settings.values).decides
    assert findings(state, settings)[0].sentence.startswith("Of the brokers that could be judged, a:8080 is")


def test_what_ails_the_cluster_comes_first(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.report_updated_at_ms[1] = 0
    (ailment,) = ailments(state, settings.values)
    assert findings(state, settings)[0] == Finding("warning", ailment.sentence)


def test_brokers_that_have_restarted_since_the_last_snapshot_are_named(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    def started(*at_ms: int) -> ClusterState:
        return replace(state, brokers=replace(state.brokers, started_at_ms=np.array(at_ms)))

    then = replace(started(1_000, 2_000, 0), snapshot="20261129T141952Z")
    found = findings(started(1_000, 9_000, 9_000), settings, earlier=[then])
    assert found[0] == Finding("warning", "Restarted since snapshot 20261129T141952Z: b:8080.")
    for unchanged in (started(1_000, 2_000, 0), started(0, 0, 0)):
        assert "Restarted" not in findings(unchanged, settings, earlier=[then])[0].sentence
    assert "Restarted" not in findings(started(1_000, 9_000, 9_000), settings)[0].sentence


def test_cpu_that_the_messages_do_not_explain_is_said(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.traffic[0] = state.brokers.traffic[1] / 2
    assert findings(state, settings)[0] == Finding(
        "warning",
        "a:8080 is the busiest broker at 90.0% (CPU); the mean is 40.0%. At the other brokers' CPU per message it "
        "would be at 5.0%: its messages cost more, as small batches do, or something else on its machine uses CPU, "
        "which no unload lowers.",
    )
    state.brokers.traffic[0, 2:] = 20 * state.brokers.traffic[1, 2:]
    assert "per message" not in findings(state, settings)[0].sentence, "large messages cost more"


def test_cpu_that_as_many_messages_did_not_take_before_is_said(state: ClusterState, settings: ResolvedSettings) -> None:
    def then(share: float, cpu: float) -> ClusterState:
        usage, traffic = state.brokers.usage.copy(), state.brokers.traffic.copy()
        usage[0, CPU], traffic[0] = cpu, share * traffic[0]
        updated = state.brokers.report_updated_at_ms - 900_000
        return replace(
            state, brokers=replace(state.brokers, usage=usage, traffic=traffic, report_updated_at_ms=updated)
        )

    assert findings(state, settings, earlier=[then(0.95, 160.0)])[0] == Finding(
        "warning",
        "a:8080 is the busiest broker at 90.0% (CPU); the mean is 40.0%. With as many messages, earlier reports had it "
        "at 40.0% at most: they cost more now, or something else on its machine uses CPU, which no unload lowers.",
    )
    for explained in (then(0.95, 330.0), then(0.5, 160.0)):
        assert "earlier reports" not in findings(state, settings, earlier=[explained])[0].sentence


def test_what_its_own_reports_show_of_cpu_that_messages_do_not_explain_is_said_in_place_of_guesses(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.traffic[0] = state.brokers.traffic[1] / 2
    earlier = []
    for hours, load in ((4, 0.2), (3, 0.4), (2, 0.6), (1, 0.8)):
        usage, traffic = state.brokers.usage.copy(), state.brokers.traffic.copy()
        usage[0, CPU], traffic[0] = 300.0 + 60.0 * load, load * traffic[0]
        updated = state.brokers.report_updated_at_ms - hours * 3_600_000
        brokers = replace(state.brokers, usage=usage, traffic=traffic, report_updated_at_ms=updated)
        earlier.append(replace(state, brokers=brokers))
    assert findings(state, settings, earlier=earlier)[0].sentence.endswith(
        "At the other brokers' CPU per message it would be at 5.0%: by its own earlier reports, about 75% stays "
        "without any message, which no unload lowers."
    )


@pytest.mark.parametrize(
    ("busiest", "others"),
    [(12.1, 12.0), (40.0, 38.0), (60.0, 5e-9), (60.0, float("nan"))],
    ids=["idle", "another load", "not sampled yet", "unknown"],
)
def test_cpu_is_not_called_unexplained_that_others_use_without_load_or_whose_cpu_is_not_known(
    state: ClusterState, settings: ResolvedSettings, busiest: float, others: float
) -> None:
    state.brokers.usage[:, CPU] = (busiest, others, others)
    state.brokers.limit[:, CPU] = 100.0
    state.brokers.traffic[0] = 0.0
    assert not [finding for finding in findings(state, settings) if "per message" in finding.sentence]


def test_where_no_limit_is_known_no_cpu_is_called_unexplained(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.limit[:], state.brokers.traffic[:] = 0.0, state.brokers.traffic[0]
    state.brokers.usage[1:, CPU] = 1.0
    assert not [finding for finding in findings(state, settings) if "per message" in finding.sentence]


def test_what_pulsar_does_not_do_as_configured_is_said_last(state: ClusterState) -> None:
    blank = resolve_settings("4.0.8", dynamic={"loadBalancerSheddingEnabled": ""})
    said = "Dynamic loadBalancerSheddingEnabled is blank: brokers keep what they started with."
    assert findings(state, blank)[-1] == Finding("info", said)


PEAK = (
    "After step-001 of the advised plan, a:8080 is at 102.0% until later steps relieve it: apply the plan when load is "
    "low."
)


@pytest.mark.parametrize(("between", "said"), [(1.02, [PEAK]), (0.85, [])])
def test_a_broker_that_is_overloaded_between_the_steps_is_named(
    state: ClusterState, settings: ResolvedSettings, between: float, said: list[str]
) -> None:
    steps = [
        unload_step(1, predicted=StepPrediction(brokers={"a:8080": between, "b:8080": 0.4})),
        unload_step(2, predicted=StepPrediction(brokers={"a:8080": 0.5, "b:8080": 0.5})),
    ]
    found = findings(state, settings, advised=make_plan(steps))
    assert [one.sentence for one in found if "of the advised plan" in one.sentence] == said


def test_a_release_newer_than_the_newest_known_comes_first(state: ClusterState) -> None:
    first = findings(state, resolve_settings("5.9.1", runtime_settings("5.0.1")))[0]
    assert (first.severity, first.sentence) == (
        "warning",
        "Pulsar 5.9.1 is newer than 5.0.1, the newest release known here: it is judged by the defaults and the "
        "decisions of 5.0.1. Look for a newer pulsar-advisor.",
    )


def busiest(state: ClusterState, settings: ResolvedSettings) -> str:
    return findings(state, settings)[0].sentence


def test_the_busiest_broker_is_named_with_its_resource_and_the_bundle_with_the_largest_share_of_that(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    first = "a:8080 is the busiest broker at 90.0% (CPU); the mean is 40.0%. "
    assert busiest(state, settings) == first + "t/hot/0x00000000_0x40000000 has the largest part of its messages: 56%."
    state.bundles.traffic[1] = (450.0, 450.0, 1.0, 1.0)
    state.bundles.traffic[0] = (50.0, 50.0, 35 * MIB, 35 * MIB)
    assert busiest(state, settings) == first + "t/hot/0x40000000_0x80000000 has the largest part of its messages: 50%."


def test_of_equally_used_brokers_the_one_with_more_messages_is_the_busiest(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[1:], state.brokers.limit[1:] = state.brokers.usage[0], state.brokers.limit[0]
    state.brokers.traffic[2] = 2 * state.brokers.traffic[0]
    assert busiest(state, settings).startswith("c:8080 is the busiest broker at 90.0% (CPU)")


def test_where_bandwidth_decides_it_is_the_bundle_with_the_most_bytes(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[0, [BANDWIDTH_IN, BANDWIDTH_OUT]] = 500_000.0, 950_000.0
    state.brokers.limit[0, [BANDWIDTH_IN, BANDWIDTH_OUT]] = 1_000_000.0
    assert "at 95.0% (outbound bandwidth)" in busiest(state, settings)
    assert busiest(state, settings).endswith("0x00000000_0x40000000 has the largest part of its outbound bytes: 62%.")


def test_of_direct_memory_no_bundle_is_blamed(state: ClusterState) -> None:
    weighted = resolve_settings("2.11.4")
    state.brokers.usage[0, DIRECT_MEMORY], state.brokers.limit[0, DIRECT_MEMORY] = 95.0, 100.0
    sentence = busiest(state, weighted)
    assert sentence.endswith("No bundle takes direct memory along, so no unload lowers it.")
    assert "Direct memory says little about load: see `lint`" in sentence


def test_brokers_without_a_users_topic_are_named_with_the_verb_that_gives_them_some_unless_a_goal_was_asked(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.bundles.topics[state.bundles.owner == 2] = 0
    [idle] = [one for one in findings(state, settings) if "no topic of users" in one.sentence]
    assert idle == Finding("info", "c:8080 serves no topic of users: `fill c:8080` finds 1 unload.")
    [excluded] = [
        one for one in findings(state, settings, exclude_brokers=("c:8080",)) if "no topic of users" in one.sentence
    ]
    assert excluded.sentence == (
        "c:8080 serves no topic of users: `fill c:8080` with the same options finds nothing: c:8080 takes nothing: the "
        "request excludes it."
    )
    new = cluster({"a": [10] * 4, "b": [], "c": []})
    [two] = [one for one in findings(new, settings) if "no topic of users" in one.sentence]
    assert two.sentence == "b:8080, c:8080 serve no topic of users: `fill b:8080 c:8080` finds 2 unloads.", "as typed"
    [of_simple] = [
        one for one in findings(replace(state, load_manager="simple"), settings) if "no topic of users" in one.sentence
    ]
    assert of_simple == Finding("info", "c:8080 serves no topic of users.")
    of_goal = make_plan((unload_step(),), goal=Goal("drain", ("c:8080",)))
    assert not [one for one in findings(state, settings, [of_goal]) if "no topic of users" in one.sentence]
    state.bundles.topics[:] = 0
    assert not [one for one in findings(state, settings) if "no topic of users" in one.sentence]


def test_samples_added_to_stored_averages_are_said(state: ClusterState, settings: ResolvedSettings) -> None:
    def of_averages() -> list[str]:
        return [one.sentence for one in findings(state, settings) if "averages" in one.sentence]

    assert of_averages() == []
    state.bundles.folded_samples[0] = 3
    assert of_averages() == [
        "The leader's averages are those it stored, plus up to 3 samples from load reports written since."
    ]
    state.bundles.unknown_samples[1] = 1
    (sentence,) = of_averages()
    assert "the figures of up to 1 more are assumed" in sentence


def test_bundles_that_isolation_policies_forbid_where_they_are_are_named(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    elsewhere = replace(state, isolation_policies=(IsolationPolicy("p", ("t/hot",), ("b",), (), 1, 100),))
    [forbidden] = [one for one in findings(elsewhere, settings) if "forbid" in one.sentence]
    assert forbidden.severity == "warning"
    assert " where isolation policies forbid it: " in forbidden.sentence
    assert "t/hot/0x00000000_0x40000000 on a:8080" in forbidden.sentence
    here = replace(state, isolation_policies=(IsolationPolicy("p", ("t/hot",), ("[ab]",), (), 1, 100),))
    assert not [one for one in findings(here, settings) if "t/hot" in one.sentence and "forbid" in one.sentence]


def test_of_a_policy_that_matches_no_broker_it_is_said_that_its_bundles_are_lost_once_unloaded(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    with_port = replace(state, isolation_policies=(IsolationPolicy("p", ("t/hot",), ("b:8080",), (), 1, 100),))
    [nowhere] = [
        one for one in findings(with_port, settings) if "t/hot" in one.sentence and "Isolation" in one.sentence
    ]
    assert nowhere.severity == "warning"
    assert nowhere.sentence.startswith("Isolation policies allow t/hot on no registered broker: ")
    assert nowhere.sentence.endswith(
        "Correct the policy (it matches host names, without port), or bring its brokers back."
    )
    assert "once unloaded" in nowhere.sentence
    with_port.brokers.complete[1] = False
    unfit = replace(with_port, isolation_policies=(IsolationPolicy("p", ("t/hot",), ("b",), (), 1, 100),))
    assert not [one for one in findings(unfit, settings) if "no registered broker" in one.sentence]
    assert not [one for one in findings(with_port, settings) if "`conform`" in one.sentence]


def test_conform_is_named_only_where_it_would_make_a_plan(state: ClusterState, settings: ResolvedSettings) -> None:
    elsewhere = replace(state, isolation_policies=(IsolationPolicy("p", ("t/hot",), ("b",), (), 1, 100),))

    def names_conform(one: ClusterState) -> bool:
        [forbidden] = [found for found in findings(one, settings) if "forbid" in found.sentence]
        return "`conform`" in forbidden.sentence

    assert names_conform(elsewhere)
    assert not names_conform(replace(elsewhere, load_manager="simple"))
    for without_room in (380.0, 330.0):  # overloaded, or with less room than any of the bundles needs
        usage = elsewhere.brokers.usage.copy()
        usage[1, CPU] = without_room
        assert not names_conform(replace(elsewhere, brokers=replace(elsewhere.brokers, usage=usage)))
    elsewhere.bundles.topics[0] = 0
    assert names_conform(elsewhere)
    elsewhere.bundles.topics[:] = 0
    assert not names_conform(elsewhere)


def test_of_very_many_bundles_conform_is_named_without_being_asked(
    settings: ResolvedSettings,
) -> None:
    policy = IsolationPolicy("p", ("t/a-.*",), ("b",), (), 1, 100)
    asked: list[Goal] = []

    def sentence(outside: int) -> str:
        state = cluster({"a": [0.05] * outside, "b": [10]}, policies=[policy])
        found = findings_of(Situation.of(state, settings), (), coverage(state, settings.values), Verbs(asked.append))
        [forbidden] = [one.sentence for one in found if "policies forbid" in one.sentence]
        return forbidden

    assert sentence(501).endswith("when it assigns a bundle; `conform` says which can move.")
    assert not asked
    assert sentence(2).endswith("when it assigns a bundle.")
    assert asked == [Goal("conform")]


def test_the_busiest_broker_is_a_warning_where_the_load_is_uneven(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    def severity() -> str:
        [found] = [one for one in findings(state, settings) if "is the busiest broker" in one.sentence]
        return found.severity

    assert severity() == "warning"
    state.brokers.usage[:, CPU] = [240.0, 220.0, 200.0]
    assert severity() == "info"


def test_of_a_broker_above_its_limit_only_that_one_of_the_two_is_wrong_is_said_and_first(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[0, 0] = 1.24 * state.brokers.limit[0, 0]
    state.brokers.usage[1, 0] = 1.5 * state.brokers.limit[1, 0]
    assert findings(state, settings)[0] == Finding(
        "warning",
        "By these figures more is in use than there is: 124% of the CPU of a:8080, 150% of the CPU of b:8080. If the "
        "next snapshot says so too, a limit is too low (-XX:ActiveProcessorCount below the machine's cores, a cgroup "
        "without a quota, a NIC speed set too low), else a clock was set back. To Pulsar such a broker is overloaded.",
    )


def test_brokers_whose_network_speed_is_unknown_are_named(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.limit[[1, 2], BANDWIDTH_OUT] = 0.0
    state.brokers.traffic[2] = 0.0
    sentences = [finding.sentence for finding in findings(state, settings)]
    assert (
        "No network speed is known of b:8080: to Pulsar, and in every figure here, bandwidth is idle there, however "
        "much is sent. Set loadBalancerOverrideBrokerNicSpeedGbps."
    ) in sentences


def test_direct_memory_that_is_nearly_full_is_said_where_no_usage_shows_it(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.brokers.usage[1, DIRECT_MEMORY], state.brokers.limit[1, DIRECT_MEMORY] = 92.0, 100.0
    [said] = [one for one in findings(state, settings) if one.sentence.startswith("Direct memory is nearly full")]
    assert said.severity == "info"
    assert "full: 92% of that of b:8080. It decides no usage there, and no unload frees it." in said.sentence
    decides = findings(state, resolve_settings("2.11.4"))
    assert not any(one.sentence.startswith("Direct memory is nearly full") for one in decides)


def test_a_bundle_is_not_blamed_for_what_it_has_none_of(state: ClusterState, settings: ResolvedSettings) -> None:
    state.bundles.traffic[:3] = 0.0
    assert busiest(state, settings) == "a:8080 is the busiest broker at 90.0% (CPU); the mean is 40.0%."


def test_a_split_that_cannot_be_carried_out_is_not_asked_for(state: ClusterState, settings: ResolvedSettings) -> None:
    waits = {"executable": False, "not_executable_because": "a controller is about to split a segment in it"}
    plan = make_plan([split_step(1).model_copy(update=waits)])
    found = findings(state, settings, [plan])
    assert not [one for one in found if "should be split" in one.sentence]


@pytest.mark.parametrize(("number", "more"), [(1, ""), (2, " and 1 more"), (3, " and 2 more")])
def test_splits_are_one_sentence(state: ClusterState, settings: ResolvedSettings, number: int, more: str) -> None:
    plan = make_plan([split_step(step) for step in range(1, number + 1)])
    first = plan.steps[0]
    found = findings(state, settings, [plan])
    assert f"{first.bundle_name}{more} should be split: {first.reason}." in [one.sentence for one in found]


def test_a_split_of_a_bundle_that_is_idle_now_is_said_to_be_in_vain(
    state: ClusterState, settings: ResolvedSettings
) -> None:
    state.bundles.long_term[0] = 100 * state.bundles.traffic[0]
    split = split_step(1, namespace="t/hot", bundle="0x00000000_0x40000000", reason="100,000.0 messages/s are too many")
    (found,) = [one for one in findings(state, settings, [make_plan([split])]) if "split" in one.sentence]
    assert found == Finding(
        "info",
        "By Pulsar's rule t/hot/0x00000000_0x40000000 would be split, in vain: 100,000.0 messages/s are too many, but "
        "that is its long-term average: now it has 1,000 messages/s.",
    )
