"""Every shared vector of splitting and filtering, once per release it was executed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parity.split_vectors import RUNNERS, run_case

VECTORS = Path(__file__).resolve().parents[1] / "data" / "vectors"
NEWEST = "5.0.1"


def _cases() -> list[Any]:
    cases = []
    for file in ("splits.json", "generated.json", "shedders.json"):
        for case in json.loads((VECTORS / file).read_text()):
            if (case.get("strategy") or case["algorithm or task"]).startswith(tuple(RUNNERS)):
                cases += [
                    pytest.param(case, release, id=f"{case['id']}-{release}")
                    for release in case["versions"] or [NEWEST]
                ]
    return cases


@pytest.mark.parametrize(("case", "release"), _cases())
def test_vector(case: dict[str, Any], release: str) -> None:
    passed, expected, actual, _ = run_case(case, release)
    assert passed, f"expected {expected}, got {actual}"
