"""Every shared vector, on every release it was executed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parity.run_vectors import NOT_APPLICABLE, run_case

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
CASES = [
    pytest.param(case, id=case["id"])
    for file in ("shedders.json", "splits.json", "generated.json")
    for case in json.loads((VECTORS / file).read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("case", CASES)
def test_our_answer_equals_that_of_the_released_java_classes(case: dict[str, Any]) -> None:
    passed, expected, actual, note = run_case(case)
    if passed is None:
        assert (case.get("strategy") or case["algorithm or task"]) in NOT_APPLICABLE
    else:
        assert passed, f"{note}: expected {expected}, got {actual}"
