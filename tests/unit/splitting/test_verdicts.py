"""The answers of a split decider, written down while it decides."""

from __future__ import annotations

from pulsar_advisor.splitting.limits import SplitLimits
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts, joined
from unit.splitting.bundle_figures import figures

LIMITS = SplitLimits(topics=10, sessions=100, msg_rate=1000, bandwidth_bytes=1 << 20, namespace_bundles=8)


def codes(verdicts: Verdicts) -> list[str]:
    return [SplitOutcome(code).code for code in verdicts.code]


def test_a_bundle_is_chosen_by_the_first_limit_it_exceeds() -> None:
    of = figures([11, 2, 2, 2], sessions=[101, 101, 0, 0], msg_rate=[0, 0, 1001, 0], msg_throughput=[0, 0, 0, 2**21])
    verdicts = Verdicts.by_limits(of, LIMITS)
    assert codes(verdicts) == ["split_topics", "split_sessions", "split_msg_rate", "split_bandwidth"]
    assert verdicts.chosen().tolist() == [0, 1, 2, 3]


def test_a_bundle_below_all_limits_names_the_nearest() -> None:
    of = figures([9, 1, 1, 1], sessions=[0, 90, 0, 0], msg_rate=[0, 0, 900, 0], msg_throughput=[0, 0, 0, 2**19.9])
    verdicts = Verdicts.by_limits(of, LIMITS)
    assert codes(verdicts) == [f"below_limits_{limit}" for limit in ("topics", "sessions", "msg_rate", "bandwidth")]
    assert verdicts.outcomes(of).explain(0) == "below all limits; closest: 9 topics, limit 10"
    assert len(verdicts.chosen()) == 0


def test_a_later_answer_replaces_the_earlier_one() -> None:
    of = figures([11, 12])
    verdicts = Verdicts.by_limits(of, LIMITS)
    verdicts.record(1, SplitOutcome.NAMESPACE_FULL, 8, 8)
    assert codes(verdicts) == ["split_topics", "namespace_full"]
    assert verdicts.chosen().tolist() == [0]


def test_answers_of_several_brokers_are_joined_in_order() -> None:
    of = figures([11])
    parts = [Verdicts.by_limits(of, LIMITS).outcomes(of) for _ in range(2)]
    assert len(joined(parts)) == 2
    assert len(joined([])) == 0
