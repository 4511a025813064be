"""Run files of test vectors: `run_vectors.py FILE...`; each case once per release it was executed on.

Prints the ids that differ with both results and the cases that don't apply with the reason, and closes with
`N passed, M failed` over cases. Exit code 1 when a case failed.
"""

from __future__ import annotations

import json
import math
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parity import extensible_vectors, modular_vectors, record_vectors, simple_vectors, split_vectors

Outcome = tuple[bool | None, object, object, str]
"""Passed (None: not applicable), expected, actual, note."""

NEWEST = "5.0.1"
RECORDED_WITH: dict[str, dict[str, Any]] = {"5.0.1": {"maxUnloadPercentage": 0.2}}
"""By release, the settings that were other than its defaults when answers were recorded: of 5.0.0-M1's class."""
DESCRIPTIONS = frozenset({"selectedIs", "why", "asserted", "note"})
"""Keys of an expectation that describe a result in words."""


def run_case(case: dict[str, Any]) -> Outcome:
    """A case on every release it holds for; the first release that differs is reported."""
    results = dict.fromkeys(case["versions"] or [NEWEST])
    for release in (*results, *(case.get("expectedIn") or {})):
        try:
            outcome = _run_on(case, release)
        except Exception:
            # One broken case must not hide the others; it counts as failed, with its trace.
            outcome = False, case["expected"], traceback.format_exc(), ""
        if outcome[0] is not True:
            return (*outcome[:3], f"{release}: {outcome[3]}" if outcome[3] else release)
    return True, None, None, ""


def as_recorded(case: dict[str, Any], release: str) -> dict[str, Any]:
    """The case with the settings that it doesn't name as they were when this release's answer was recorded."""
    return {**case, "config": RECORDED_WITH.get(release, {}) | case["config"]}


def _run_on(case: dict[str, Any], release: str) -> Outcome:
    strategy = case.get("strategy") or case["algorithm or task"]
    if strategy in NOT_APPLICABLE:
        return None, None, None, NOT_APPLICABLE[strategy]
    if strategy not in RUNNERS:
        return split_vectors.run_case(case, release)
    expected = _expected(case, release)
    actual = RUNNERS[strategy](as_recorded(case, release), release)
    return _agree(expected, actual), expected, actual, ""


def _expected(case: dict[str, Any], release: str) -> list[Any]:
    elsewhere = (case.get("expectedIn") or {}).get(release)
    if elsewhere is not None:
        return elsewhere if "steps" in case else [elsewhere]
    return [step["expected"] for step in case["steps"]] if "steps" in case else [case["expected"]]


def _agree(expected: list[Any], actual: list[Any]) -> bool:
    """Every expected figure equals ours to the last bit; an answer may say more than was expected."""
    return len(expected) == len(actual) and all(
        _same(_in_order(key, value), _in_order(key, answer.get(key) if isinstance(answer, dict) else answer))
        for wanted, answer in zip(expected, actual, strict=True)
        for key, value in (wanted.items() if isinstance(wanted, dict) else [("", wanted)])
        if key not in DESCRIPTIONS
    )


def _in_order(key: str, value: Any) -> Any:
    """Sets that are written as lists, sorted."""
    if key in ("eligible", "recentlyUnloadedBrokersAfter") and isinstance(value, list):
        return sorted(value)
    if key == "decisions" and isinstance(value, list):
        return sorted(value, key=lambda move: (move["source"], move["bundle"]))
    if key == "destinations" and isinstance(value, dict):
        return {bundle: sorted(place) if isinstance(place, list) else place for bundle, place in value.items()}
    return value


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(_same(expected.get(key), actual.get(key)) for key in {**expected, **actual})
    if isinstance(expected, list) and isinstance(actual, list | tuple):
        return len(expected) == len(actual) and all(map(_same, expected, actual))
    if isinstance(actual, float) and not math.isfinite(actual):
        return bool(float(expected) == actual or (math.isnan(float(expected)) and math.isnan(actual)))
    return bool(expected == actual) and isinstance(expected, bool) == isinstance(actual, bool)


NOT_APPLICABLE = {
    "RangeThresholdShedder": "the class exists in a pull request only; no release has it",
    "TimeAverageMessageData": "samples are folded while the tables are made, see tests/spark/test_normalize.py",
    "TimeAverageBrokerData.reset": "nothing here asks for a broker's short-term averages",
    "needBrokerDataUpdate": "when a broker publishes is taken from its report",
    "REST split HOT, modular load manager, no bundle has topics": "a split step names its range",
}

RUNNERS: dict[str, Callable[[dict[str, Any], str], list[Any]]] = {
    **dict.fromkeys(modular_vectors.STATE, modular_vectors.shed),
    **dict.fromkeys(modular_vectors.PLACEMENTS, modular_vectors.place),
    "ext.TransferShedder": extensible_vectors.transfer,
    "ext.LeastResourceUsageWithWeight": extensible_vectors.place,
    "ext.BrokerLoadData": extensible_vectors.broker_load_data,
    "TopKBundles": extensible_vectors.top_k,
    "NamespaceBundleStats.compare": extensible_vectors.compare_stats,
    "LocalBrokerData": record_vectors.local_broker_data,
    "order": record_vectors.map_order,
    "sort": record_vectors.sort,
    "ModularLoadManager.doLoadShedding (OverloadShedder)": record_vectors.do_load_shedding,
    **simple_vectors.RUNNERS,
}


def main(files: Iterable[str]) -> int:
    """Run the files; the exit code."""
    passed = failed = 0
    for file in files:
        for case in json.loads(Path(file).read_text(encoding="utf-8")):
            success, expected, actual, note = run_case(case)
            if success is None:
                print(f"not applicable {case['id']}: {note}")
            elif success:
                passed += 1
            else:
                failed += 1
                print(f"FAILED {case['id']} {note}\n  expected {json.dumps(expected)}\n  actual   {actual}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
