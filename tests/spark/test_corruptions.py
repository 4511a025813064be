"""What can't be is not judged as if it were: each corruption ends as the reviewed table says, and none passes.

`python -m corruptions.record` judges what the table lacks; `tests/corruptions/outcomes.py` says what outcomes mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from corruptions.generated import Corruption, corruptions
from corruptions.outcomes import PASSED, Judge, Outcome
from corruptions.table import key_of, reviewed

pytestmark = pytest.mark.spark


_REVIEWED = reviewed()
_KNOWN = [one for one in corruptions() if key_of(one) in _REVIEWED]


def _covering(features: Callable[[Corruption], frozenset[object]]) -> frozenset[Corruption]:
    """As few as it takes for each feature of any corruption to occur, chosen greedily."""
    has = {one: features(one) for one in _KNOWN}
    chosen, missing = set[Corruption](), set[object]().union(*has.values())
    while missing:
        best = max(
            _KNOWN, key=lambda one: (len(has[one] & missing), one.load_manager not in missing and _no_tables(one))
        )
        chosen.add(best)
        missing -= has[best]
    return frozenset(chosen)


def _no_tables(corruption: Corruption) -> bool:
    """Whether the capture is refused; what is refused later, `test_brokers_in_migration_stop_the_line` shows."""
    return _REVIEWED[key_of(corruption)].by.startswith("capture: ")


_SAMPLE = _covering(lambda one: frozenset({one.load_manager, _REVIEWED[key_of(one)].verdict}))
_OF_EVERY_KIND = _covering(lambda one: frozenset({one.kind, (one.load_manager, one.surface)}))
"""What CI judges, as slow tests: a change of how documents are decoded shows in a few kinds only."""


def _marks(corruption: Corruption) -> tuple[pytest.MarkDecorator, ...]:
    if corruption in _SAMPLE:
        return ()
    return (pytest.mark.slow if corruption in _OF_EVERY_KIND else pytest.mark.full,)


@pytest.fixture(scope="module")
def judge(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(spark, tmp_path_factory.mktemp("corruptions"))


def test_every_corruption_was_reviewed() -> None:
    generated, judged = {key_of(one) for one in corruptions()}, _REVIEWED.keys()
    assert judged == generated
    assert len(judged) >= 500


def test_none_passes_and_changes_the_advice() -> None:
    verdicts = Counter(outcome.verdict for outcome in _REVIEWED.values())
    assert verdicts.keys() <= {"refused", "confined", "noticed", "harmless"}
    assert verdicts[PASSED] == 0


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("corruption", [pytest.param(one, id=one.name, marks=_marks(one)) for one in _KNOWN])
def test_a_corruption_ends_as_reviewed(corruption: Corruption, judge: Judge) -> None:
    expected, found = _REVIEWED[key_of(corruption)], judge.taken(corruption)
    by_checks = corruption in _SAMPLE and bool(_checks(expected.by))
    if not isinstance(found, Outcome):
        found = judge.judged_by_checks(found) if by_checks else judge.judged(found)
    assert found.verdict == expected.verdict, found.by
    assert _checks(expected.by) <= _checks(found.by), "what it was noticed by doesn't name it any more"
    if by_checks:
        assert _checks(found.by) == _checks(expected.by), "more checks fail, maybe of the cluster as it was recorded"


def _checks(by: str) -> set[str]:
    """The names of checks in a line."""
    return set(re.findall(r"\b(?:brokers|bundles|capture|namespaces|policies|problems|settings|topics)\.\w+", by))
