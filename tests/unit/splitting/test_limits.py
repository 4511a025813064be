from __future__ import annotations

import numpy as np
import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.splitting.limits import REASONS, BundleFigures, SplitLimits, excess, rank_within, sessions_of
from unit.splitting.bundle_figures import figures

LIMITS = SplitLimits(topics=1000, sessions=500, msg_rate=30_000, bandwidth_bytes=100 << 20, namespace_bundles=128)


def answer(rows: BundleFigures, limits: SplitLimits = LIMITS) -> tuple[bool, str, float, float]:
    found = excess(rows, limits)
    return bool(found.exceeded[0]), REASONS[found.limit[0]], float(found.left[0]), float(found.right[0])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (figures([1001]), "Topics"),
        (figures([10], sessions=[501]), "Sessions"),
        (figures([10], msg_rate=[30_000.5]), "MsgRate"),
        (figures([10], msg_throughput=[104_857_601]), "Bandwidth"),
    ],
)
def test_a_bundle_above_a_limit_exceeds_it(rows, reason):
    assert answer(rows)[:2] == (True, reason)


def test_a_bundle_at_its_limits_exceeds_none():
    assert not answer(figures([1000], sessions=[500], msg_rate=[30_000], msg_throughput=[100 << 20]))[0]


def test_the_first_limit_exceeded_is_named():
    assert answer(figures([10], sessions=[501], msg_rate=[1e9]))[1] == "Sessions"


def test_below_all_limits_the_nearest_is_named_with_both_sides():
    assert answer(figures([100], msg_rate=[29_000.0])) == (False, "MsgRate", 29_000.0, 30_000.0)


@pytest.mark.parametrize("off", [0, -1])
def test_sessions_have_no_limit_unless_it_is_positive(off):
    limits = SplitLimits(1000, off, 30_000, 100 << 20, 128)
    assert answer(figures([10], sessions=[10**6]), limits)[:2] == (False, "Topics")


def test_a_figure_that_is_no_number_exceeds_nothing():
    assert answer(figures([10], msg_rate=[float("nan")], msg_throughput=[float("nan")]))[:2] == (False, "Topics")


def test_sessions_are_added_in_32_bits():
    most = np.array([2**31 - 1], dtype=np.int64)
    assert sessions_of(most, np.array([1], dtype=np.int64))[0] == -(2**31)


@pytest.mark.parametrize(("bits", "expected"), [(32, -(2**31)), (64, 2**31)], ids=["modular and extensible", "simple"])
def test_two_gibibytes_wrap_where_the_manager_multiplies_in_32_bits(bits, expected):
    settings = resolve_settings("4.0.8", what_if={"loadBalancerNamespaceBundleMaxBandwidthMbytes": "2048"}).values
    assert SplitLimits.from_settings(settings, bandwidth_bits=bits).bandwidth_bytes == expected


def test_rank_within_counts_earlier_entries_of_the_same_namespace():
    assert rank_within(np.array([3, 1, 3, 3, 1], dtype=np.int32)).tolist() == [0, 0, 1, 2, 1]


def test_rank_within_of_nothing_is_nothing():
    assert rank_within(np.array([], dtype=np.int32)).tolist() == []
