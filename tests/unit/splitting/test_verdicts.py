"""The answers of a split decider, written down while it decides."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.splitting.limits import BundleFigures, SplitLimits
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts, joined

LIMITS = SplitLimits(topics=10, sessions=100, msg_rate=1000, bandwidth_bytes=1 << 20, namespace_bundles=8)


def figures(*rows: tuple[int, int, float, float]) -> BundleFigures:
    """Topics, sessions, message rate and throughput of each bundle."""
    topics, sessions, rate, throughput = (np.array(column) for column in zip(*rows, strict=True))
    count = np.arange(len(rows))
    return BundleFigures(count, count * 0, count, count + 100, topics, sessions, rate, throughput)


def codes(verdicts: Verdicts) -> list[str]:
    return [SplitOutcome(code).code for code in verdicts.code]


def test_a_bundle_is_chosen_by_the_first_limit_it_exceeds() -> None:
    of = figures((11, 101, 0.0, 0.0), (2, 101, 0.0, 0.0), (2, 0, 1001.0, 0.0), (2, 0, 0.0, 2.0**21))
    verdicts = Verdicts.by_limits(of, LIMITS)
    assert codes(verdicts) == ["split_topics", "split_sessions", "split_msg_rate", "split_bandwidth"]
    assert verdicts.chosen().tolist() == [0, 1, 2, 3]


def test_a_bundle_below_all_limits_names_the_nearest() -> None:
    of = figures((9, 0, 0.0, 0.0), (1, 90, 0.0, 0.0), (1, 0, 900.0, 0.0), (1, 0, 0.0, 2.0**19.9))
    verdicts = Verdicts.by_limits(of, LIMITS)
    assert codes(verdicts) == [f"below_limits_{limit}" for limit in ("topics", "sessions", "msg_rate", "bandwidth")]
    assert verdicts.outcomes(of).explain(0) == "below all limits; closest: 9 topics, limit 10"
    assert len(verdicts.chosen()) == 0


def test_a_later_answer_replaces_the_earlier_one() -> None:
    of = figures((11, 0, 0.0, 0.0), (12, 0, 0.0, 0.0))
    verdicts = Verdicts.by_limits(of, LIMITS)
    verdicts.record(1, SplitOutcome.NAMESPACE_FULL, 8, 8)
    assert codes(verdicts) == ["split_topics", "namespace_full"]
    assert verdicts.chosen().tolist() == [0]


def test_answers_of_several_brokers_are_joined_in_order() -> None:
    of = figures((11, 0, 0.0, 0.0))
    parts = [Verdicts.by_limits(of, LIMITS).outcomes(of) for _ in range(2)]
    assert len(joined(parts)) == 2
    assert len(joined([])) == 0
