"""What becomes of each corruption: the cluster is captured with it and advised on, and the answer compared.

- **refused**: no advice; a named error.
- **confined**: a check sets brokers, namespaces or bundles aside.
- **noticed**: a check fails, or a note, a doubt, a warning or a strategy's refusal names it: advice that changes says
  why. A finding that only repeats the changed figures notices nothing.
- **harmless**: the same advice with the same figures, for the reason given.
- **PASSED**: the advice or a figure changed, and nothing says so. None may.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from corruptions.documents import captured, lines_of, recorded
from corruptions.generated import Corruption
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages import recommend
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.root import MANIFEST, PLANS, Root, Snapshot
from pulsar_advisor.tables.raw import SURFACES
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.schemas import DOCUMENTS, PROBLEMS, TABLES

PASSED: Final = "PASSED"
_LONGEST: Final = 300
"""Characters of a refusal in the table."""
_OF_THE_RUN: Final = frozenset({"manifest_sha256", "plan", "digest", "settings", "inputs", "notes", "refusals"})
"""Parts of an answer that aren't advice, or are compared by themselves."""
_OF_MANIFEST: Final = (
    *("identity", "load_manager", "load_managers", "pulsar_version", "pulsar_versions"),
    *("leader", "leader_unloads", "incomplete_brokers", "moved_bundles"),
)
_WHEN_READ: Final = "readAt"
"""Differs from capture to capture, whatever is corrupt."""
_IN_ORDER: Final = ("isolation_policies.jsonl.zst",)
"""The files whose lines' order means something; others are written by several threads."""


@dataclass(frozen=True)
class Outcome:
    """What became of a corruption, and by what."""

    verdict: str
    by: str


@dataclass(frozen=True)
class Answer:
    """What a snapshot led to."""

    refusal: str | None = None
    failing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Failing check -> what it excludes."""
    said: frozenset[str] = frozenset()
    """Notes, doubts of steps, warnings without figures, and refusals of strategies."""
    advice: str = ""
    """The whole answer, as text to compare."""


@dataclass(frozen=True)
class Taken:
    """A snapshot of a corrupted cluster."""

    load_manager: str
    snapshot: Snapshot
    content: str
    """What the tables can read of it; of snapshots with the same content, only one is judged."""


class Judge:
    """Captures and advises, each distinct snapshot only once, and validates only tables that differ from any before:
    nothing after normalize reads the raw files. Threads may share it.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._lock = threading.Lock()
        """Great Expectations' queries share the name of a view."""
        self._beginning = threading.Lock()
        self._judging: dict[str, threading.Lock] = {}
        self._answers: dict[str, Answer] = {}
        self._of_tables: dict[str, Answer] = {}

    def taken(self, corruption: Corruption) -> Taken | Outcome:
        """Capture a corrupted cluster; its outcome already, if the capture is refused or holds nothing different."""
        documents = recorded(corruption.load_manager).copy()
        corruption.apply(documents)
        root = self._new_root()
        try:
            snapshot = captured(documents, root)
        except AdvisorError as error:
            return Outcome("refused", f"capture: {_named(error)}")
        content = _content(snapshot)
        if content == self._clean(corruption.load_manager).content:
            self._forget(root)
            return Outcome("harmless", "no table reads the difference, if there is one")
        return Taken(corruption.load_manager, snapshot, content)

    def judged(self, taken: Taken) -> Outcome:
        """Compare the answer about a captured cluster with that about the same one as it was recorded."""
        return compared(self._answer(self._clean(taken.load_manager)), self._answer(taken))

    def judged_by_checks(self, taken: Taken) -> Outcome:
        """The outcome by failing checks only, as if none fails of the cluster as recorded: half as many answers."""
        answer = self._answer(taken)
        return compared(replace(answer, failing={}), answer)

    @cache  # noqa: B019 - a judge lives as long as the process
    def _clean(self, load_manager: str) -> Taken:
        snapshot = captured(recorded(load_manager).copy(), self._new_root())
        return Taken(load_manager, snapshot, _content(snapshot))

    def _answer(self, taken: Taken) -> Answer:
        with self._beginning:
            judging = self._judging.setdefault(taken.content, threading.Lock())
        with judging:  # a second thread waits for the first
            if taken.content not in self._answers:
                self._answers[taken.content] = self._advised(taken.snapshot)
        self._forget(taken.snapshot.root)
        return self._answers[taken.content]

    def _advised(self, snapshot: Snapshot) -> Answer:
        failing: dict[str, tuple[str, ...]] = {}
        try:
            normalize(self._spark, snapshot)
            tables = _tables(snapshot)
            if tables in self._of_tables:
                return self._of_tables[tables]
            with self._lock:
                results = validate(self._spark, snapshot).results
            failing = {one.check: one.excluded for one in results if not one.success}
            request = Request(shedder="configured", placement="configured")
            document = recommend.run(lambda: self._spark, snapshot, request)
        except AdvisorError as error:
            return Answer(_named(error), failing)
        plans = [json.loads(path.read_bytes()) for path in Path(str(snapshot.folder(PLANS))).glob("*--*")]
        # Not by their files' names: digests differ from run to run, and a plan that only splits has one placement less.
        plans.sort(key=lambda plan: (plan["shedder"], plan.get("placement") or ""))
        doubts = {doubt["sentence"] for plan in plans for step in plan["steps"] for doubt in step["doubts"]}
        warned = {one.sentence for one in document.findings if one.severity == "warning" and "%" not in one.sentence}
        said = [*document.notes, *(one.sentence for one in document.refusals), *doubts, *warned]
        advice = json.dumps([_without(as_json(document)), *map(_without, plans)])
        return self._of_tables.setdefault(tables, Answer(None, failing, frozenset(said), advice))

    def _new_root(self) -> Root:
        return Root(tempfile.mkdtemp(dir=self._folder), "test")

    def _forget(self, root: Root) -> None:
        shutil.rmtree(root.url, ignore_errors=True)


def compared(clean: Answer, answer: Answer) -> Outcome:
    """The outcome of a snapshot, compared with the clean one."""
    failing = {check: names for check, names in answer.failing.items() if clean.failing.get(check) != names}
    named = ", ".join(sorted(failing))
    if answer.refusal is not None:
        return Outcome("refused", answer.refusal + (f" [{named}]" if named else ""))
    if any(failing.values()):
        return Outcome("confined", "; ".join(_named_check(check, names) for check, names in sorted(failing.items())))
    said = sorted(answer.said - clean.said)
    if failing or said:
        return Outcome("noticed", "; ".join([*sorted(failing), *said]))
    if answer.advice == clean.advice:
        return Outcome("harmless", "the answer is the same")
    return Outcome(PASSED, _first_difference(json.loads(clean.advice), json.loads(answer.advice)))


def _content(snapshot: Snapshot) -> str:
    """What a snapshot holds, without what depends on how it was read; null and absent are one."""
    folder = Path(str(snapshot.folder("raw")))
    manifest = json.loads((folder / MANIFEST).read_bytes())
    files = {
        path: [_as_read(json.loads(line), _read_of(path)) for line in (lines if path in _IN_ORDER else sorted(lines))]
        for path, lines in lines_of(folder).items()
    }
    return json.dumps([files, *_manifest_parts(manifest)], sort_keys=True)


def _tables(snapshot: Snapshot) -> str:
    """What the tables of a snapshot hold, with the parts of the manifest that are read beside them."""
    manifest = json.loads((Path(str(snapshot.folder("raw"))) / MANIFEST).read_bytes())
    rows = {one.name: sorted(map(repr, _rows(snapshot, one.name))) for one in TABLES if one is not DOCUMENTS}
    return json.dumps([rows, *_manifest_parts(manifest)], sort_keys=True)


def _rows(snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
    """A table, without the wording of what could not be read."""
    rows = read_table(snapshot, table)
    return (rows.drop_columns("detail") if table == PROBLEMS.name else rows).to_pylist()


def _manifest_parts(manifest: Mapping[str, Any]) -> list[Any]:
    """The parts of a manifest that an answer may depend on."""
    gaps = [
        sorted(f"{one['surface']} {one['broker']} {one.get('namespace')}" for one in manifest[part])
        for part in ("missing", "failures")
    ]
    read = sorted({one["surface"] for one in manifest["files"] if one["rows"]})
    return [gaps, read, {name: manifest[name] for name in _OF_MANIFEST}]


@cache
def _read_of(path: str) -> DataType:
    surface = path.removesuffix(".jsonl.zst").partition("/")[0]
    read = SURFACES[surface].schema
    # Consumers are read if a broker gives no report that counts them.
    counted = "stats struct<subscriptions: map<string, struct<consumers: array<struct<>>>>, "
    return StructType.fromDDL(read.replace("stats struct<", counted))


def _as_read(value: Any, read: DataType) -> Any:
    """The part of a value that the tables read; null and absent are one."""
    if isinstance(read, StructType) and isinstance(value, dict):
        fields = [field for field in read if field.name != _WHEN_READ]
        parts = {field.name: _as_read(value.get(field.name), field.dataType) for field in fields}
        return {name: part for name, part in parts.items() if part is not None}
    if isinstance(read, MapType) and isinstance(value, dict):
        return {name: _as_read(part, read.valueType) for name, part in value.items()}
    if isinstance(read, ArrayType) and isinstance(value, list):
        return [_as_read(part, read.elementType) for part in value]
    return value


def _without(value: Any) -> Any:
    """An answer without what differs from run to run."""
    if isinstance(value, dict):
        return {key: _without(entry) for key, entry in value.items() if key not in _OF_THE_RUN}
    return [_without(entry) for entry in value] if isinstance(value, list) else value


def _named(error: AdvisorError) -> str:
    message = " ".join(re.sub(r"\S*/(raw|tables|validation)/\S+", "…", str(error)).split())
    return f"exit {error.exit_code}: {message if len(message) <= _LONGEST else message[:_LONGEST] + '…'}"


def _named_check(check: str, names: tuple[str, ...]) -> str:
    return f"{check}: {_some(names)}" if names else check


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _first_difference(left: Any, right: Any, where: str = "") -> str:
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return next(
            (_first_difference(left[key], right[key], f"{where}.{key}") for key in left if left[key] != right[key]), ""
        )
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return next((_first_difference(a, b, f"{where}[{at}]") for at, (a, b) in pairs if a != b), "")
    return f"{where}: {str(left)[:80]} -> {str(right)[:80]}"
