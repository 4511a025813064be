"""The sentences that matter, and how much of the load could be judged."""

from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.settings import ResolvedSettings
from pulsar_advisor.planning.findings import coverage, findings


def test_everything_judged_is_one(state: ClusterState) -> None:
    assert coverage(state).judged_ratio == 1.0


def test_an_excluded_broker_takes_its_load_out_of_the_judged_share(state: ClusterState) -> None:
    state.brokers.complete[0] = False
    judged = coverage(state)
    assert judged.excluded_brokers == ("a:8080",)
    assert round(judged.judged_ratio, 3) == round(6 / 86, 3)


def test_the_busiest_broker_is_named_with_its_heaviest_bundle(state: ClusterState, settings: ResolvedSettings) -> None:
    sentences = [finding.sentence for finding in findings(state, settings.values, "Do nothing.", None, [])]
    assert sentences[0] == "Do nothing."
    assert sentences[1] == (
        "a:8080 is the busiest broker at 90.0%; the mean is 40.0%. "
        "t/hot/0x00000000_0x40000000 causes 62% of its throughput."
    )
    assert len(sentences) >= 3
