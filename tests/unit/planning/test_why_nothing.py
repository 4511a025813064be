"""Where a shedder does nothing, the reason shown is the one that decided: a case for every answer that can be it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import outcomes_of
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding.registry import load
from states import QUARTERS, BrokerRow, BundleRow, cluster_state

MIB = 2.0**20
RECENTLY_MS = 1_795_250_000_000 - 60_000
BUSY = (3000.0, 3000.0, 30 * MIB, 30 * MIB)
IDLE = (100.0, 100.0, MIB, MIB)


def cluster(
    busy_percent: float = 95.0,
    idle_percent: float = 10.0,
    busy: tuple[float, float, float, float] = BUSY,
    idle: tuple[float, float, float, float] = IDLE,
    bundles: int = 3,
    recently: bool = False,
    bundle: tuple[float, float, float, float] | None = None,
    idle_reports: bool = True,
    age_ms: int = 0,
) -> ClusterState:
    """A busy broker whose bundles share its traffic (or carry `bundle` each), and an idle one with one bundle."""
    share = bundle or tuple(figure / max(bundles, 1) for figure in busy)
    state = cluster_state(
        [
            BrokerRow("busy:8080", cpu=(busy_percent, 100.0), traffic=busy, topics=6),
            BrokerRow("idle:8080", cpu=(idle_percent, 100.0), traffic=idle, topics=1),
        ],
        [
            *(
                BundleRow("t/n", text, "busy:8080", share, topics=2, last_unloaded_at_ms=RECENTLY_MS if recently else 0)
                for text in QUARTERS[:bundles]
            ),
            BundleRow("t/n", QUARTERS[3], "idle:8080", idle, topics=1),
        ],
    )
    state.brokers.report_updated_at_ms[:] -= age_ms
    if not idle_reports:
        state.brokers.report_updated_at_ms[1] = 0
    return state


def why_nothing(shedder: str, state: ClusterState, **what_if: str) -> str:
    settings = resolve_settings("4.0.8", what_if=what_if)
    ((_, proposal),) = propose(
        Request(shedder=shedder, placement="RoundRobinBrokerSelector", splits=False), Situation.of_fit(state, settings)
    )
    assert not isinstance(proposal, Exception) and proposal.why_nothing is not None, proposal
    return proposal.why_nothing


HITS = {"loadBalancerSheddingConditionHitCountThreshold": "0"}
AVG_HITS = {
    "loadBalancerAvgShedderHitCountHighThreshold": "4",
    "loadBalancerAvgShedderHitCountLowThreshold": "4",
}

CASES: dict[str, dict[str, tuple[dict[str, Any], dict[str, str], str]]] = {
    "ThresholdShedder": {
        "near_mean": ({"busy_percent": 20.0}, {}, "busy:8080: smoothed usage 20.00% is below"),
        "too_little_to_move": ({"busy": IDLE}, {}, "busy:8080: is above mean plus threshold, but only"),
        "one_bundle": ({"bundles": 1}, {}, "busy:8080: is above mean plus threshold, but lists 1 bundle"),
        "nothing_to_move": (
            {"recently": True},
            {},
            "busy:8080: is above mean plus threshold, but none of its bundles is movable",
        ),
        "too_little_for_idle": (
            {"busy_percent": 20.0, "idle_percent": 2.0, "busy": IDLE},
            {"lowerBoundarySheddingEnabled": "true", "loadBalancerBrokerThresholdShedderPercentage": "8"},
            "busy:8080: is the busiest while another is idle, but only",
        ),
        "nothing_for_idle": (
            {"busy_percent": 20.0, "idle_percent": 2.0, "recently": True},
            {
                "lowerBoundarySheddingEnabled": "true",
                "loadBalancerBrokerThresholdShedderPercentage": "8",
                "loadBalancerBundleUnloadMinThroughputThreshold": "0",
            },
            "busy:8080: is the busiest while another is idle, but none of its bundles is movable",
        ),
        "no_load": ({"busy_percent": 0.0, "idle_percent": 0.0}, {}, "the mean usage of all brokers is 0.00%"),
    },
    "OverloadShedder": {
        "below_threshold": ({"busy_percent": 50.0}, {}, "busy:8080: usage 50.00% is below"),
        "one_bundle": ({"bundles": 1}, {}, "busy:8080: is overloaded, but lists 1 bundle"),
        "nothing_to_move": ({"recently": True}, {}, "busy:8080: is overloaded, but none of its bundles"),
    },
    "UniformLoadShedder": {
        "rates_alike": ({"busy": IDLE}, {}, "message rates differ by 0.0%"),
        "throughputs_alike": (
            {"busy": IDLE},
            {"loadBalancerMsgRateDifferenceShedderThreshold": "0"},
            "highest throughput is 1.00 times the lowest",
        ),
        "one_bundle": ({"bundles": 1}, {}, "busy:8080: is the busiest, but lists 1 bundle"),
        "too_little_rate": (
            {"busy": (250.0, 250.0, MIB, MIB), "idle": (150.0, 150.0, MIB, MIB)},
            {},
            "busy:8080: only 40 msg/s would move; the minimum is 1,000 msg/s",
        ),
        "too_little_throughput": (
            {"busy": (100.0, 100.0, 2 * MIB, 2 * MIB), "idle": (100.0, 100.0, 0.25 * MIB, 0.25 * MIB)},
            {},
            "busy:8080: only 734,003 B/s would move; the minimum is 1,048,576 B/s",
        ),
        "nothing_fits": (
            {"bundle": (2999.0, 2999.0, MIB, MIB)},
            {},
            "busy:8080: is the busiest, but none of its bundles is both movable and small enough",
        ),
    },
    "AvgShedder": {
        "pair_alike": ({"busy_percent": 12.0}, {}, "its pair's scores are 2.00 points apart"),
        "too_few_hits": (
            {},
            dict.fromkeys(AVG_HITS, "12"),
            "its pair is above the threshold for 10 hits; 12 are needed",
        ),
        # The hits are dropped in the fourth and the eighth cycle, so that the last one only counts anew.
        "too_little_gap": ({"busy": IDLE}, AVG_HITS, "too few messages, and only 0 B/s would move"),
        "nothing_fits": (
            {"bundle": (2999.0, 2999.0, MIB, MIB)},
            {},
            "busy:8080: is the busier of its pair, but none of its bundles is both movable and small enough",
        ),
    },
    "TransferShedder": {
        "no_load_data": ({"idle_reports": False}, HITS, "a registered broker has no load data"),
        "outdated": ({"age_ms": 3_600_000}, HITS, "load data is 3,600 s old; the limit is 1,800 s"),
        "too_few_hits": (
            {},
            {"loadBalancerSheddingConditionHitCountThreshold": "10"},
            "10 hits in a row; it acts at more than 10",
        ),
        "balanced": ({"busy_percent": 10.0, "busy": IDLE}, HITS, "loads deviate by 0.0000 from their mean"),
        "no_top_bundles": ({"bundles": 0}, HITS, "busy:8080: is the busiest, but reports no top bundles"),
        "one_top_bundle": ({"bundles": 1}, HITS, "busy:8080: is the busiest, but reports 1 top bundle"),
        "nothing_moves": ({"recently": True}, HITS, "busy:8080: is the busiest, but none of its top bundles can move"),
    },
    "SimpleLoadManagerImpl": {
        "not_overloaded": ({"busy_percent": 50.0}, {}, "busy:8080: busiest resource 50.0% is not above"),
        "one_bundle": ({"bundles": 1}, {}, "busy:8080: is overloaded, but reports 1 bundle"),
        "nobody_comfortable": (
            {"idle_percent": 80.0},
            {},
            "busy:8080: is overloaded; the idlest broker has 80.0%",
        ),
        "recently_unloaded": ({"recently": True}, {}, "busy:8080: is overloaded, but its first bundle was unloaded"),
    },
    "MinimalMoveShedder": {
        "no_load": ({"busy_percent": 0.0, "idle_percent": 0.0}, {}, "the mean usage of all brokers is 0.00%"),
        "within": ({"busy_percent": 10.5}, {}, "busy:8080: usage 10.50% is within the ceiling"),
        "fits_nowhere": (
            {"busy_percent": 65.0, "idle_percent": 45.0},
            {},
            "busy:8080: usage 65.00% is above the target of 60.50%, but no moves lower it",
        ),
        "nothing_helps": ({"bundles": 1}, {}, "busy:8080: usage 95.00% can't fall much"),
    },
}

NEVER_DECIDE = {
    "UniformLoadShedder": {"not_busiest_by_rate", "not_busiest_by_throughput"},
    "AvgShedder": {"receives"},
    "TransferShedder": {"cooling_down", "not_reached", "receives"},
    "MinimalMoveShedder": {"unfit", "receives"},
}
"""Answers about brokers beside the one that decides, or of a leader with a past."""


@pytest.mark.parametrize(
    ("shedder", "answer"), [(shedder, answer) for shedder, cases in CASES.items() for answer in cases]
)
def test_the_reason_shown_is_the_one_that_decided(shedder: str, answer: str) -> None:
    of, what_if, expected = CASES[shedder][answer]
    assert expected in why_nothing(shedder, cluster(**of), **what_if)


@pytest.mark.parametrize("shedder", CASES)
def test_every_answer_that_can_decide_has_a_case(shedder: str) -> None:
    can_decide = {
        outcome.code
        for outcome in outcomes_of(load(shedder))
        if type(outcome).__name__ == "BrokerOutcome" and not outcome.chosen
    }
    assert can_decide == CASES[shedder].keys() | NEVER_DECIDE.get(shedder, set())
