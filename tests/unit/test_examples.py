"""The recipes of CONTRIBUTING: what is added in the files that they name is on offer everywhere, with no other change.

A shedder of four files, a plan kind with its verb, a form of the report, and a check.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NAME = "MostTopicsShedder"

KIND = '''"""hold: leaves every bundle where it is."""

from pulsar_advisor.planning.kinds.answers import proposal
from pulsar_advisor.planning.kinds.room import ROOM_KEYS
from pulsar_advisor.planning.proposals.fitness import EVERY_UNLOAD_READS

READS = EVERY_UNLOAD_READS
SETTING_KEYS = ROOM_KEYS


def propose(goal, room):
    return proposal(goal, room, [], {}, [], why_nothing="all is to stay")
'''
KIND_LINE = """    Kind(
        name="hold", module="pulsar_advisor.planning.kinds.hold", summary="Leaves all as it is.", about="cluster"
    ),
"""
VERB = '''"""The verb of the plan kind hold."""

from pulsar_advisor.cli.stages import Making
from pulsar_advisor.model.plans.goal import Goal


def hold(*, making: Making = Making()) -> None:
    """Make a plan that leaves every bundle where it is."""
    making.plan(Goal("hold"))
'''
FORM = '''"""A report of one line."""


def headline(page):
    return f"{page.cluster} at {page.snapshot}"
'''
CHECK = "The example of a check holds."

REPORT = f"""
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.reporting.forms import rendered
from pulsar_advisor.reporting.markdown import render_markdown
from unit.reporting.skewed import Inputs, make_plan, recommendation_of, skewed_settings, skewed_state, validation_of

state, settings = skewed_state(), skewed_settings()
request = Request(shedder="{NAME}", placement="RoundRobinBrokerSelector", splits=False)
((_, proposal),) = propose(request, Situation.of_fit(state, settings))
plan = make_plan(state, settings, moves=proposal.moves, shedder="{NAME}", why_nothing=proposal.why_nothing)
inputs = Inputs(state, recommendation_of((plan,)), (plan,), validation_of(), [], plan.settings)
print(render_markdown(inputs.page()), *rendered(inputs.page(), "headline"))
"""
FORMS = """
from pulsar_advisor_airflow.forms import ALL, GOAL, strategy_params

print(strategy_params(ALL, ALL)["shedder"].schema["enum"], GOAL["goal"].schema["enum"])
"""
RECOMMEND = "recommend --root root --cluster c --shedder"
COMMANDS = (
    f"{RECOMMEND} MostTopics",
    f"{RECOMMEND} {NAME}",
    "hold --help",
    "report --format pdf",
    "validate --explain settings.example_holds",
)
ANSWER = """
import sys

sys.stderr = sys.stdout
from pulsar_advisor.cli import exit_code

for command in sys.argv[1:]:
    print(chr(0) + command)
    exit_code(command.split())
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working tree without what git ignores, with the example's files where its README says they go."""
    clone = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = REPOSITORY / name, clone / name
        if source.exists() or source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    example, package = clone / "docs" / "examples", clone / "jobs" / "pulsar_advisor" / "shedding"
    shutil.copy2(example / "most_topics_shedder.py", package)
    shutil.copy2(example / f"{NAME}.md", clone / "docs" / "strategies")
    shutil.copy2(example / f"{NAME}.json", clone / "tests" / "data" / "strategies")
    registry = package / "registry.py"
    text = registry.read_text()
    end_of_shedders = text.index("\n)\n", text.index("SHEDDERS: Final = (")) + 1
    line = (example / "registry_line.txt").read_text()
    registry.write_text(text[:end_of_shedders] + line + text[end_of_shedders:])
    advisor = clone / "jobs" / "pulsar_advisor"
    (advisor / "planning" / "kinds" / "hold.py").write_text(KIND)
    insert(advisor / "planning" / "kinds" / "registry.py", "KINDS: Final = (\n", KIND_LINE)
    (advisor / "cli" / "hold.py").write_text(VERB)
    insert(advisor / "cli" / "__init__.py", "from pulsar_advisor.cli import (\n", "    hold,\n")
    insert(advisor / "cli" / "__init__.py", "for verb in (\n", "    hold.hold,\n")
    (advisor / "reporting" / "headline.py").write_text(FORM)
    insert(
        advisor / "reporting" / "forms.py", "] = {\n", '    "headline": "pulsar_advisor.reporting.headline:headline",\n'
    )
    suite = clone / "expectations" / "settings.json"
    document = json.loads(suite.read_text())
    first = document["expectations"][0]
    added = {**first, "meta": {**first["meta"], "code": "example_holds", "title": CHECK}}
    suite.write_text(json.dumps({**document, "expectations": [*document["expectations"], added]}))
    return clone


def insert(file: Path, after: str, line: str) -> None:
    text = file.read_text()
    assert text.count(after) == 1, f"{file.name} has not one '{after.strip()}'"
    file.write_text(text.replace(after, after + line))


def python(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the clone's own code answers."""
    folders = os.pathsep.join(str(clone / folder) for folder in ("jobs", "plugins", "tests"))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": folders, "AIRFLOW_HOME": str(clone / "airflow")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def answers(clone: Path) -> dict[str, str]:
    """What the command line says to each of `COMMANDS`."""
    said = python(clone, "-c", ANSWER, *COMMANDS)
    assert said.returncode == 0, said.stderr
    return dict(part.split("\n", 1) for part in said.stdout.split("\0")[1:])


@pytest.fixture(scope="module")
def forms(clone: Path) -> str:
    """What the form of the DAGs offers."""
    return python(clone, "-c", FORMS).stdout


@pytest.fixture(scope="module")
def report(clone: Path) -> str:
    """A report, and its headline."""
    answer = python(clone, "-c", REPORT)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_the_command_line_offers_it(answers: dict[str, str]) -> None:
    assert f"the nearest is '{NAME}'" in answers[f"{RECOMMEND} MostTopics"]
    assert NAME not in answers[f"{RECOMMEND} {NAME}"]


@pytest.mark.slow
def test_the_form_of_the_dags_offers_it(forms: str) -> None:
    assert NAME in forms


@pytest.mark.slow
def test_a_report_shows_what_it_would_do_and_why(report: str) -> None:
    assert NAME in report
    assert "topics are above mean plus threshold" in report


@pytest.fixture(scope="module")
def documented(clone: Path) -> tuple[str, Path]:
    """What was wrong with the documentation before it was made again, and its folder since."""
    (clone / "docs" / "schemas" / "plan-4.json").write_text("{}")  # of an earlier version of the document
    stale = python(clone, "docs/generate.py", "--check")
    assert stale.returncode == 1
    made = python(clone, "docs/generate.py")
    assert made.returncode == 0, made.stderr
    return stale.stderr, clone / "docs"


@pytest.mark.slow
def test_the_tables_of_the_documentation_get_a_row(documented: tuple[str, Path]) -> None:
    stale, docs = documented
    assert "strategies/README.md" in stale
    assert f"| [{NAME}]({NAME}.md) |" in (docs / "strategies" / "README.md").read_text()
    assert f"| {NAME} | shedder |" in (docs / "checks.md").read_text()


@pytest.mark.slow
def test_the_schema_of_an_earlier_version_of_a_document_is_removed(documented: tuple[str, Path]) -> None:
    stale, docs = documented
    assert "plan-4.json differ" in stale
    assert not (docs / "schemas" / "plan-4.json").exists()


@pytest.mark.slow
def test_the_tests_for_all_shedders_find_it_and_pass(clone: Path) -> None:
    of_all = [
        str(file)
        for package in ("shedding", "planning")
        for file in sorted((clone / "tests/unit" / package).rglob("test_*.py"))
        if "SHEDDERS" in file.read_text()
    ]
    answer = python(clone, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", NAME, *of_all)
    assert answer.returncode == 0, answer.stdout
    for test in (
        f"test_the_decision_is_the_one_expected[{NAME}-most-topics-first]",
        f"test_it_has_a_page_that_names_its_settings[{NAME}]",
        f"test_everything_looked_at_has_one_answer[{NAME}]",
        f"test_everything_a_strategy_says_it_reads_can_change_its_answer[shed-{NAME}]",
    ):
        assert f"{test} PASSED" in answer.stdout


def test_a_plan_kind_makes_plans_and_is_a_verb_and_a_goal_of_the_form(
    clone: Path, answers: dict[str, str], forms: str
) -> None:
    code = """
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.kinds.goal_outcome import goal_outcome
from unit.planning.kinds.clusters import cluster, planned

plan = planned(cluster({"a": [10], "b": [20]}), Goal("hold"))
print(goal_outcome(plan), plan.decision.why_nothing)
"""
    answer = python(clone, "-c", code)
    assert "reached all is to stay" in answer.stdout, answer.stderr
    assert "Make a plan that leaves every bundle where it is." in " ".join(answers["hold --help"].split())
    assert "'hold'" in forms


def test_a_form_of_the_report_is_offered_and_rendered(answers: dict[str, str], report: str) -> None:
    assert '"headline"' in answers["report --format pdf"]
    assert " at 2" in report.splitlines()[-1], report


def test_a_check_is_in_the_catalogue_and_in_the_documentation(
    answers: dict[str, str], documented: tuple[str, Path]
) -> None:
    assert CHECK in answers["validate --explain settings.example_holds"]
    assert CHECK in (documented[1] / "checks.md").read_text()
