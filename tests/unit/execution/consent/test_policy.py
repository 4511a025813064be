from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pulsar_advisor.execution.consent.policy import ApprovalPolicy, read_policy
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan, PlannedSetting, Prediction
from unit.execution.doubles import B1, UPPER, forecast, make_plan, split_step, unload_step

TEXT = """
schema: pulsar-advisor/approval-policy/1
separate_approver: true
automatic:
  max_moves: 2
  min_gain_ratio: 0.05
  min_confidence: medium
  namespaces: [shop/*]
  window:
    days: [mon, tue, wed, thu, fri, sat]
    from: '08:00'
    to: '18:00'
    timezone: Europe/Berlin
  freezes:
    - {from: 2026-12-20, to: 2027-01-06}
"""
SATURDAY_NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(TEXT)
    return path


def unmet(file: Path, plan: Plan, now: datetime = SATURDAY_NOON) -> list[str]:
    criteria = read_policy(file).automatic
    assert criteria is not None
    return list(criteria.unmet(plan, now))


def test_a_plan_that_meets_every_criterion(file: Path) -> None:
    assert unmet(file, make_plan([unload_step(1), unload_step(2, UPPER, confidence="medium")])) == []


def test_a_highest_usage_that_reads_the_same_at_worst_does_not_rise(file: Path) -> None:
    assert unmet(file, gaining(0.7, worst=0.8004)) == []


def test_nothing_is_approved_without_a_person_by_default() -> None:
    assert ApprovalPolicy().automatic is None


def gaining(after: float | None, worst: float | None = None) -> Plan:
    end = forecast({B1: after}).model_copy(update={"highest_maximum_ratio": worst})
    prediction = Prediction(model="proportional", before=forecast({B1: 0.8}), after=end)
    return make_plan([unload_step()], predicted=prediction)


@pytest.mark.parametrize(
    ("plan", "because"),
    [
        (make_plan([unload_step(number) for number in (1, 2, 3)]), "it moves 3 bundles, and max_moves is 2"),
        (make_plan([unload_step(executable=False)]), "it moves 0 bundles, and max_moves is 2"),
        (gaining(0.76), "the highest usage falls by 4.0 points, and min_gain_ratio is 5.0 points"),
        (gaining(0.7, worst=0.801), "at worst the highest usage rises from 80.0% to 80.1%"),
        (make_plan([unload_step(namespace="bank/core")]), "namespace bank/core matches none of shop/*"),
    ],
)
def test_a_criterion_that_is_not_met_is_named(file: Path, plan: Plan, because: str) -> None:
    assert unmet(file, plan) == [because]


def test_a_highest_usage_that_rises_is_not_said_to_fall(file: Path) -> None:
    assert unmet(file, gaining(0.85)) == [
        "it needs a person's consent: the highest predicted usage of all brokers rises from 80.0% to 85.0%",
        "the highest usage doesn't fall, and min_gain_ratio is 5.0 points",
    ]


def test_a_plan_of_another_kind_goes_to_a_person(file: Path) -> None:
    file.write_text(TEXT.replace("automatic:", "automatic:\n  kinds: [TransferShedder, relieve]"))
    reasons = unmet(file, make_plan([unload_step()]))
    assert reasons == ["it was made by ThresholdShedder, and kinds are TransferShedder, relieve"]
    assert unmet(file, make_plan([unload_step()], shedder="relieve")) == []


def test_a_roll_goes_to_a_person_whatever_its_first_turn_moves(file: Path) -> None:
    assert unmet(file, make_plan([unload_step()], shedder=ROLL)) == [
        "it is a roll, whose later turns are not among its steps"
    ]


def test_a_policy_says_its_name_who_decided_on_it_and_its_criteria(file: Path) -> None:
    named = "automatic:\n  name: small moves\n  approved_by: carol"
    file.write_text(TEXT.replace("automatic:", named))
    criteria = read_policy(file).automatic
    assert criteria is not None
    assert criteria.sentence.startswith("every criterion of policy 'small moves', decided by carol, is met: {")
    assert '"max_moves":2' in criteria.sentence


def test_a_plan_that_needs_consent_goes_to_a_person(file: Path) -> None:
    split = make_plan([unload_step(1), split_step(2)])
    assert unmet(file, split) == ["it needs a person's consent: it splits 1 bundle, which can't be undone"]


def test_a_plan_that_assumes_other_settings_goes_to_a_person(file: Path) -> None:
    heavy = {"loadBalancerCPUResourceWeight": PlannedSetting(value="100", origin="what-if")}
    assert unmet(file, make_plan([unload_step()], settings=heavy)) == [
        "its figures assume loadBalancerCPUResourceWeight=100"
    ]


def test_a_step_of_low_confidence_goes_to_a_person(file: Path) -> None:
    reasons = unmet(file, make_plan([unload_step(confidence="low")]))
    assert reasons[1] == "1 step is less certain than medium, step-001 first"


def test_a_gain_that_is_not_known_goes_to_a_person(file: Path) -> None:
    assert "its gain can't be predicted" in unmet(file, gaining(None))
    from_nowhere = gaining(0.7, worst=0.8).predicted.model_copy(update={"before": forecast({B1: None})})
    assert "its gain can't be predicted" in unmet(file, make_plan([unload_step()], predicted=from_nowhere))


@pytest.mark.parametrize(
    ("now", "inside"),
    [
        (datetime(2026, 11, 21, 7, 0, tzinfo=UTC), True),  # 08:00 in Berlin
        (datetime(2026, 11, 21, 6, 59, tzinfo=UTC), False),
        (datetime(2026, 11, 21, 17, 0, tzinfo=UTC), False),  # 18:00
        (datetime(2026, 11, 22, 12, 0, tzinfo=UTC), False),  # a Sunday
        (datetime(2026, 7, 1, 6, 0, tzinfo=UTC), True),  # 08:00 in summer
    ],
)
def test_the_window_is_in_its_own_time_zone(file: Path, now: datetime, inside: bool) -> None:
    assert (unmet(file, make_plan([unload_step()]), now) == []) == inside


@pytest.mark.parametrize(
    ("now", "inside"),
    [
        (datetime(2026, 11, 20, 22, 0, tzinfo=UTC), True),
        (datetime(2026, 11, 21, 3, 59, tzinfo=UTC), True),  # the rest of Friday's window
        (datetime(2026, 11, 21, 4, 0, tzinfo=UTC), False),
        (datetime(2026, 11, 21, 22, 0, tzinfo=UTC), False),
        (datetime(2026, 11, 20, 3, 0, tzinfo=UTC), False),
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_it_begins(file: Path, now: datetime, inside: bool) -> None:
    file.write_text(
        TEXT.replace("[mon, tue, wed, thu, fri, sat]", "[fri]")
        .replace("'08:00'", "'22:00'")
        .replace("'18:00'", "'04:00'")
        .replace("Europe/Berlin", "UTC")
    )
    assert (unmet(file, make_plan([unload_step()]), now) == []) == inside


@pytest.mark.parametrize(
    ("now", "inside"),
    [
        (datetime(2026, 11, 20, 7, 59, tzinfo=UTC), False),
        (datetime(2026, 11, 20, 8, 0, tzinfo=UTC), True),
        (datetime(2026, 11, 21, 7, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 21, 8, 0, tzinfo=UTC), False),
    ],
)
def test_a_window_that_ends_when_it_begins_lasts_a_day(file: Path, now: datetime, inside: bool) -> None:
    days = TEXT.replace("[mon, tue, wed, thu, fri, sat]", "[fri]")
    file.write_text(days.replace("'18:00'", "'08:00'").replace("Europe/Berlin", "UTC"))
    assert (unmet(file, make_plan([unload_step()]), now) == []) == inside


@pytest.mark.parametrize(("day", "frozen"), [(19, False), (20, True)])
def test_a_freeze_sends_every_plan_to_a_person(file: Path, day: int, frozen: bool) -> None:
    file.write_text(TEXT.replace("fri, sat]", "fri, sat, sun]"))
    reasons = unmet(file, make_plan([unload_step()]), datetime(2026, 12, day, 12, 0, tzinfo=UTC))
    assert reasons == (["changes are frozen from 2026-12-20 to 2027-01-06"] if frozen else [])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("max_moves: 2", "max_moves: 0", "automatic.max_moves"),
        ("max_moves: 2", "max_move: 2", "automatic.max_moves"),
        ("min_gain_ratio: 0.05", "min_gain_ratio: 5", "automatic.min_gain_ratio"),
        ("'18:00'", "18:00", "in quotes"),
        ("'18:00'", "'18:00+01:00'", "name the zone in timezone"),
        ("Europe/Berlin", "Mars/Olympus", "is not a time zone"),
        ("to: 2027-01-06", "to: 2026-12-01", "ends before it begins"),
        ("namespaces: [shop/*]", "namespaces: []", "automatic.namespaces"),
        ("approval-policy/1", "approval-policy/2", "must begin with 'schema:"),
        (TEXT, "[schema]", "must begin with 'schema:"),
        ("separate_approver: true", "separate_approver: true\nseparate_approver: false", "appears twice"),
        ("automatic:", "automatic: [", "is not YAML"),
        ("to: 2027-01-06", "to: 2027-01-45", "is not YAML"),
        ("max_moves: 2", "max_moves: !!bool maybe", "is not YAML"),
        ("to: 2027-01-06", "to: !!timestamp soon", "is not YAML"),
        ("automatic:", "automatic: " + "[" * 50_000, "is not YAML"),
        ("[shop/*]", r'["\UFFFFFFFF"]', "is not YAML"),
    ],
)
def test_a_policy_that_is_not_valid_is_refused_with_its_place(file: Path, old: str, new: str, says: str) -> None:
    assert old in TEXT
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(UsageError, match=says):
        read_policy(file)


def test_a_policy_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't read the approval policy"):
        read_policy(tmp_path / "nothing.yaml")


def test_another_policy_has_another_source(file: Path) -> None:
    before = read_policy(file).source
    file.write_text(TEXT.replace("max_moves: 2", "max_moves: 3"))
    assert before != read_policy(file).source == read_policy(file).source


def test_what_the_ledger_keeps_of_a_policy_is_in_the_words_of_its_file(file: Path) -> None:
    criteria = read_policy(file).automatic
    assert criteria is not None
    assert '"from":"2026-12-20"' in criteria.sentence
