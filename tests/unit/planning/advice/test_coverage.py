"""How much of the load could be judged, and when that is too little for an answer about the cluster."""

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import CPU, NO_ROW, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.advice.coverage import Coverage, coverage
from unit.planning.advice.zookeeper_alone import of_extensible_zookeeper_alone
from unit.planning.conftest import MIB

A, B, C = 0, 1, 2
DEFAULTS = resolve_settings("4.0.8").values


def test_everything_judged_is_one(state: ClusterState) -> None:
    assert coverage(state, DEFAULTS).judged_ratio == 1.0


def test_an_excluded_broker_takes_its_load_out_of_the_judged_share(state: ClusterState) -> None:
    state.brokers.complete[0] = False
    judged = coverage(state, DEFAULTS)
    assert judged.excluded_brokers == ("a:8080",)
    assert round(judged.judged_ratio, 3) == round(6 / 86, 3)


def test_what_was_left_out_is_said_where_something_was(state: ClusterState) -> None:
    assert coverage(state, DEFAULTS).shortfall == ""
    state.brokers.complete[B] = False
    assert coverage(state, DEFAULTS).shortfall == (
        "8.3% of the messages and 2.3% of the bytes could not be judged. Left out: b:8080."
    )


@pytest.mark.parametrize(
    ("sentence", "bundles", "shortfall"),
    [
        ("All of the load could be judged.", 1, "All of the load could be judged. Left out: 1 bundle."),
        ("2.3% of the bytes could not be judged.", 0, "2.3% of the bytes could not be judged."),
    ],
)
def test_either_a_share_or_what_was_left_out_is_enough_to_say_so(sentence: str, bundles: int, shortfall: str) -> None:
    assert Coverage(sentence=sentence, excluded_bundles=bundles).shortfall == shortfall


def test_what_decides_is_not_said_twice(state: ClusterState) -> None:
    judged = coverage(without(state, A), DEFAULTS)
    assert judged.why
    assert judged.shortfall == ""


def test_a_share_is_of_messages_and_of_bytes(state: ClusterState) -> None:
    state.bundles.usable[0] = False
    judged = coverage(state, DEFAULTS)
    assert round(judged.judged_msg_rate_ratio, 3) == round(1400 / 2400, 3)
    assert judged.sentence == "41.7% of the messages and 58.1% of the bytes could not be judged."


@pytest.mark.parametrize(
    ("rate", "said"), [(0.0, "1.6% of the bytes"), (0.01, "Less than 0.1% of the messages and 1.6% of the bytes")]
)
def test_a_share_is_never_written_as_zero(state: ClusterState, rate: float, said: str) -> None:
    state.bundles.usable[3] = False
    state.bundles.traffic[3] = (rate, 0.0, 1.4 * MIB, 0.0)
    assert coverage(state, DEFAULTS).sentence.startswith(f"{said} could not be judged.")


def test_load_that_nobody_measured_is_counted_in_bundles(state: ClusterState) -> None:
    state.brokers.complete[1] = False
    state.brokers.report_updated_at_ms[1] = 0
    state.bundles.traffic[3] = 0.0
    assert coverage(state, DEFAULTS).sentence == "The load of 1 bundle without figures could not be judged."


def test_a_figure_that_no_machine_has_is_no_load(state: ClusterState) -> None:
    state.bundles.usable[0] = False
    state.bundles.traffic[0, 2] = np.nan
    judged = coverage(state, DEFAULTS)
    assert (judged.judged_ratio, judged.judged_msg_rate_ratio, judged.unmeasured_bundles) == (1.0, 1.0, 1)


def test_load_is_not_judged_without_reports_or_owners(state: ClusterState) -> None:
    judged = coverage(of_extensible_zookeeper_alone(state), DEFAULTS)
    assert judged.unmeasured_bundles == len(state.bundles)
    assert judged.sentence == "The load of 6 bundles without figures could not be judged."


def test_where_only_owners_are_told_the_load_of_owned_bundles_is_not_judged(state: ClusterState) -> None:
    silent = of_extensible_zookeeper_alone(state)
    owned = replace(silent, bundles=replace(silent.bundles, owner=state.bundles.owner))
    assert coverage(owned, DEFAULTS).sentence == "The load of 5 bundles without figures could not be judged."


def test_load_without_a_known_owner_is_not_judged(state: ClusterState) -> None:
    owner = state.bundles.owner.copy()
    owner[:3] = NO_ROW  # all bundles of the hot broker, whose list of owned bundles could not be read
    judged = coverage(replace(state, bundles=replace(state.bundles, owner=owner)), DEFAULTS)
    assert judged.decides
    assert judged.sentence == "75.0% of the messages and 93.0% of the bytes could not be judged."


def without(state: ClusterState, broker: int) -> ClusterState:
    """The state with a broker set aside."""
    complete = state.brokers.complete.copy()
    complete[broker] = False
    return replace(state, brokers=replace(state.brokers, complete=complete))


def silent(state: ClusterState, broker: int) -> ClusterState:
    """The state if a broker returned no report."""
    reports, traffic = state.brokers.report_updated_at_ms.copy(), state.bundles.traffic.copy()
    reports[broker], traffic[state.bundles.owner == broker] = 0, 0.0
    aside = without(state, broker)
    return replace(
        aside,
        brokers=replace(aside.brokers, report_updated_at_ms=reports),
        bundles=replace(aside.bundles, traffic=traffic),
    )


def test_enough_is_judged_if_everything_is(state: ClusterState) -> None:
    judged = coverage(state, DEFAULTS)
    assert (judged.decides, judged.why) == (False, "")
    assert judged.headline("Do nothing.", claims_enough=True) == "Do nothing."


def test_a_twentieth_of_the_load_does_not_decide(state: ClusterState) -> None:
    judged = coverage(without(state, B), DEFAULTS)
    assert 0.9 < judged.judged_msg_rate_ratio < 1.0
    assert not judged.decides


def test_without_the_busiest_broker_no_answer_claims_enough(state: ClusterState) -> None:
    judged = coverage(without(state, A), DEFAULTS, set_aside_by=("brokers.msg_rate_in",))
    headline = judged.headline("Do nothing: no strategy would act on these figures.", claims_enough=True)
    assert headline == (
        "Too little can be judged: a:8080 was set aside, and is the busiest by what it reported last (90.0%). 75.0% of "
        "the messages and 93.0% of the bytes could not be judged (see brokers.msg_rate_in). No advice without it: look "
        "at `validate`, then capture again."
    )


def test_what_can_be_advised_comes_after_what_can_not_be_judged(state: ClusterState) -> None:
    headline = coverage(without(state, A), DEFAULTS).headline("Unload 2 bundles.", claims_enough=False)
    assert headline.startswith("Too little can be judged: a:8080 ")
    assert headline.endswith(" For the rest: Unload 2 bundles.")


def test_the_busiest_broker_decides_however_little_traffic_it_has(state: ClusterState) -> None:
    state.brokers.usage[B, CPU] = state.brokers.limit[B, CPU]
    judged = coverage(without(state, B), DEFAULTS)
    assert judged.judged_msg_rate_ratio > 0.9
    assert judged.why.startswith("Too little can be judged: b:8080 was set aside, and is the busiest")


def test_a_broker_without_a_report_may_be_the_busiest(state: ClusterState) -> None:
    judged = coverage(silent(state, B), DEFAULTS)
    assert judged.busiest == "b:8080 was set aside, and nothing shows how busy it is"


def test_what_a_silent_broker_published_shows_that_it_is_not_the_busiest(state: ClusterState) -> None:
    one_bundle = silent(state, B)
    assert coverage(one_bundle, DEFAULTS, published=state).busiest == ""


def test_a_silent_broker_without_bundles_is_not_busy(state: ClusterState) -> None:
    idle = replace(
        state, bundles=replace(state.bundles, owner=np.where(state.bundles.owner == B, C, state.bundles.owner))
    )
    assert not coverage(silent(idle, B), DEFAULTS).decides


def test_usage_that_can_not_be_shows_nothing(state: ClusterState) -> None:
    state.brokers.usage[B, CPU] = np.nan
    assert "nothing shows how busy it is" in coverage(without(state, B), DEFAULTS).busiest


@pytest.mark.parametrize("bundles", [1, 2])
def test_bundles_that_hold_more_than_a_tenth_decide(state: ClusterState, bundles: int) -> None:
    state.bundles.usable[:bundles] = False
    judged = coverage(state, DEFAULTS)
    assert judged.decides and not judged.busiest
    assert judged.why == f"Too little can be judged: {judged.sentence}"


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan, np.inf, 1e300])
def test_a_broker_without_a_cpu_limit_may_be_the_busiest(state: ClusterState, limit: float) -> None:
    state.brokers.limit[A, CPU] = limit
    judged = coverage(state, DEFAULTS)
    assert judged.decides
    why = "a:8080 reports an impossible CPU limit, and nothing shows how busy it is."
    assert judged.why == f"Too little can be judged: {why}"
    assert judged.sentence == f"All of the load could be judged, but not each broker: {why}"


def test_bundles_that_nobody_measured_are_a_share_of_those_with_an_owner(state: ClusterState) -> None:
    state.bundles.usable[4] = False
    state.bundles.traffic[4] = np.nan
    judged = coverage(state, DEFAULTS)
    assert (judged.unmeasured_bundles, judged.unmeasured_ratio) == (1, 0.2)
