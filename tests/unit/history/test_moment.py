"""What a day keeps of a snapshot that was judged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pulsar_advisor.history.columns import MOVED, UNFIT
from pulsar_advisor.history.moment import _flags

RANGE = "0x00000000_0xffffffff"
BUNDLES = [f"{namespace}/{RANGE}" for namespace in ("t/n", "t/n2", "t/m")]


@pytest.mark.parametrize(
    ("excluded", "unfit"),
    [({}, [0, 0, 0]), ({"bundle": [BUNDLES[2]]}, [0, 0, UNFIT]), ({"namespace": ["t/n"]}, [UNFIT, 0, 0])],
    ids=["nothing", "a bundle", "a namespace with all its bundles"],
)
def test_what_a_check_set_aside_is_unfit_in_the_day(excluded: dict[str, list[str]], unfit: list[int]) -> None:
    table = pa.table({"bundle": BUNDLES, "moved": [True, False, False]})
    nothing: dict[str, list[str]] = {"bundle": [], "namespace": [], "broker": []}
    assert _flags(table, nothing | excluded).tolist() == [MOVED + unfit[0], *unfit[1:]]
