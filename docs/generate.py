"""Writes what the documentation takes from the code (`make docs`); with `--check`, fails if any of it is out of date.

Whole pages are made from the checks and the tables' schemas, tables within pages from the registries and from the
results in docs/results/, and the JSON Schemas of the documents from their types.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

# First: pydantic keeps the docstrings of fields only in the types that are made after it.
from documents import DOCUMENTS, json_schema

# isort: split
import mdformat
import packages
from checks_page import checks_page
from lint_page import lint_page
from msgspec import Struct
from settings import table_of_weights, tables_of_settings
from tables_page import tables_page

from pulsar_advisor.capture.documents import BundleData, LoadReport, LocalPolicies, Policies
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.model.strategy.entry import Strategy
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS, SPLIT_DECIDERS
from pulsar_advisor.tables.raw import SURFACES
from pulsar_advisor_airflow.provider import get_provider_info

DOCS = Path(__file__).parent
_FORM = tomllib.loads((DOCS.parent / ".mdformat.toml").read_text(encoding="utf-8"))
OUTCOMES = DOCS.parent / "tests" / "corruptions" / "outcomes.tsv"
STRANGER = DOCS.parent / "tests" / "data" / "compose" / "stranger.json"
PERMISSIONS = DOCS.parent / "tests" / "data" / "permissions.json"


def pages() -> dict[Path, str]:
    """Path -> the text that it should have."""
    strategies, splitting = DOCS / "strategies" / "README.md", DOCS / "splitting" / "README.md"
    names = ("architecture", "fields", "formats", "operations", "compose", "airflow", "history")
    architecture, fields, formats, operations, compose, airflow, history = (DOCS / f"{name}.md" for name in names)
    return {
        **{page: filled(page, {}) for page in sorted(DOCS.glob("*.md")) if _RESULTS.search(page.read_text("utf-8"))},
        DOCS / "index.md": start_page(),
        DOCS / "pictures" / "packages.svg": packages.picture(),
        DOCS / "checks.md": checks_page(),
        DOCS / "lint.md": lint_page(),
        DOCS / "tables.md": tables_page(),
        **_with_settings(strategies.parent, (*SHEDDERS, *PLACEMENTS)),
        **_with_settings(splitting.parent, (*SPLIT_DECIDERS, *SPLIT_ALGORITHMS)),
        strategies: filled(
            strategies,
            {"shedders": _table(SHEDDERS), "placements": _table(PLACEMENTS), "weights": table_of_weights()},
        ),
        splitting: filled(splitting, {"deciders": _table(SPLIT_DECIDERS), "algorithms": _table(SPLIT_ALGORITHMS)}),
        architecture: filled(architecture, {"layers": packages.table()}),
        fields: filled(fields, {**_fields(), "impossible values": _impossible_values()}),
        formats: filled(formats, {"documents": _documents()}),
        compose: filled(compose, {"stranger": _stranger()}),
        airflow: filled(airflow, {"connections": _connections(), "options": _options()}),
        operations: filled(operations, {"permissions": _permissions()}),
        history: filled(history, {"columns": _columns_of_days()}),
        **{DOCS / "schemas" / f"{name.replace('/', '-')}.json": _schema(name) for name in DOCUMENTS},
    }


def _with_settings(folder: Path, entries: Iterable[Strategy]) -> dict[Path, str]:
    """The pages of these strategies, each with the table of the settings it reads."""
    return {
        page: filled(page, {"settings": table})
        for page, table in ((folder / f"{name}.md", table) for name, table in tables_of_settings(entries).items())
    }


def start_page() -> str:
    """The README, with its links as seen from `docs/`; what isn't part of the site is left out."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    of_the_site = "".join(line for line in readme.splitlines(keepends=True) if "](CONTRIBUTING.md)" not in line)
    text = re.sub(r"(\]\(|\[)docs/", r"\1", of_the_site).replace("](strategies)", "](strategies/README.md)")
    return _formatted(text)


def _formatted(text: str) -> str:
    """As `make format` leaves it."""
    return str(mdformat.text(text, options=_FORM, extensions=_FORM["extensions"]))


def _schema(name: str) -> str:
    return json.dumps(json_schema(name), indent=1, ensure_ascii=False) + "\n"


_RESULTS = re.compile(r"<!-- (results/[a-z-]+\.tsv): made by make docs -->")


def filled(page: Path, parts: Mapping[str, str]) -> str:
    """The page with each part, and the table of each file of results that it names, between its two comments."""
    text = page.read_text(encoding="utf-8")
    for name, part in {**parts, **{name: _results(DOCS / name) for name in _RESULTS.findall(text)}}.items():
        begin, end = f"<!-- {name}: made by make docs -->\n", f"<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"{page}: expected one '{begin.strip()}' and one '{end}'")
        whole = f"{begin}\n{part}\n\n{end}"
        text = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _, whole=whole: whole, text, flags=re.DOTALL)
    return text


def _results(file: Path) -> str:
    """A file of results, tab-separated and headed by its columns, as a table."""
    head, *rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["--"] * len(head), *rows))


_DECODED: Mapping[str, tuple[type[Struct], str]] = {
    "policies": (Policies, "namespaces"),
    "local policies": (LocalPolicies, "local_policies"),
    "load report": (LoadReport, "load_reports"),
    "averages": (BundleData, "bundle_data"),
}
"""What a capture decodes -> the type that says what is kept, and the surface whose schema says what the tables read."""


def _fields() -> dict[str, str]:
    """What becomes of the fields that a capture keeps, by document."""
    return {f"fields of the {name}": _fates(*where) for name, where in _DECODED.items()}


def _fates(document: type[Struct], surface: str) -> str:
    schema = SURFACES[surface].schema.partition("document")[2]
    read = [field for field in document.__struct_fields__ if re.search(rf"[ <]{field}:", schema)]
    kept = [field for field in document.__struct_fields__ if field not in read]
    rows = [f"| {fate} | {', '.join(f'`{field}`' for field in fields)} |" for fate, fields in
            (("used", read), ("kept", kept)) if fields]  # fmt: skip
    return "\n".join(["| what becomes of them | fields |", "| -- | -- |", *rows])


def _documents() -> str:
    """The documents that have a JSON Schema, each with the first line of its type."""
    summaries = {name: (document.__doc__ or "").splitlines()[0] for name, document in DOCUMENTS.items()}
    rows = [
        f"| [`pulsar-advisor/{name}`](schemas/{name.replace('/', '-')}.json) | {summary} |"
        for name, summary in summaries.items()
    ]
    return "\n".join(["| document | what it is |", "| -- | -- |", *rows])


_VERDICTS = ("refused", "confined", "noticed", "harmless")


def _impossible_values() -> str:
    """What happens to impossible values, by field, and to documents that contradict each other."""
    with OUTCOMES.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    fields: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for load_manager, surface, field, kind, verdict, _ in rows:
        where = surface if load_manager == "modular" else f"{surface} ({load_manager.capitalize()})"
        fields[where][field][verdict].append(kind)
    parts = []
    for surface, of_surface in fields.items():
        head = [f"### {surface[0].upper()}{surface[1:]}", "", "| field | refused | confined | noticed | harmless |"]
        body = [_outcomes(field, outcomes) for field, outcomes in of_surface.items()]
        parts.append("\n".join([*head, "| -- | -- | -- | -- | -- |", *body]))
    return "\n\n".join(parts)


def _outcomes(field: str, kinds: Mapping[str, Sequence[str]]) -> str:
    name = f"`{field}`" if field else "the whole"
    return " | ".join([f"| {name}", *(", ".join(kinds.get(verdict, ())) or "–" for verdict in _VERDICTS)]) + " |"


def _permissions() -> str:
    """The least role that may make each call, by release; calls with the same answers share a row."""
    by_release: dict[str, dict[str, str]] = json.loads(PERMISSIONS.read_text(encoding="utf-8"))
    calls: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for call in next(iter(by_release.values())):
        calls[tuple(roles[call] for roles in by_release.values())].append(call)
    rows = [f"| {', '.join(same)} | {' | '.join(roles)} |" for roles, same in calls.items()]
    return "\n".join([f"| call | {' | '.join(by_release)} |", f"| -- |{' -- |' * len(by_release)}", *rows])


def _stranger() -> str:
    """What a container without a secret is answered at each port of the stack."""
    answers: dict[str, dict[str, str]] = json.loads(STRANGER.read_text(encoding="utf-8"))
    rows = [f"| `{service}` | {port} | {said} |" for service, ports in answers.items() for port, said in ports.items()]
    return "\n".join(["| service | port | answer |", "| -- | -- | -- |", *(rows or ["| none listens |  |  |"])])


def _connections() -> str:
    """What the forms of the connection types ask for, beside user and password."""
    head = ["| connection | field | name | meaning |", "| -- | -- | -- | -- |"]
    rows = [
        f"| `{kind['connection-type']}` | {field['label']} | `{name}` | {field.get('description', '')} |"
        for kind in get_provider_info()["connection-types"]
        for name, field in kind["conn-fields"].items()
    ]
    return _formatted("\n".join([*head, *rows])).strip()


def _options() -> str:
    """The options of Airflow's section `[pulsar_advisor]`."""
    head = ["| option | default | meaning |", "| -- | -- | -- |"]
    [section] = get_provider_info()["config"].values()
    rows = [
        f"| `{name}` | {_code(option['default'])} | {option['description']} |"
        for name, option in section["options"].items()
    ]
    return _formatted("\n".join([*head, *rows])).strip()


def _columns_of_days() -> str:
    """The columns of the tables of a folded day."""
    head = ["| table | column | type | meaning |", "| -- | -- | -- | -- |"]
    rows = [
        f"| `{table}` | `{field.name}` | {field.type} | {field.metadata[b'comment'].decode()} |"
        for table, schema in DAY_TABLES.items()
        for field in schema
    ]
    return _formatted("\n".join([*head, *rows])).strip()


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(entries: Iterable[Strategy]) -> str:
    head = ["| name | load manager | since | what it does |", "| -- | -- | -- | -- |"]
    return "\n".join(head + [_row(entry) for entry in entries])


def _row(entry: Strategy) -> str:
    managers = ", ".join(manager.capitalize() for manager in entry.load_managers)
    return (
        f"| [{entry.name}]({entry.name}.md)"
        f" | {'every' if len(entry.load_managers) == 3 else managers}"
        f" | {entry.first_release or 'ours'}"
        f" | {entry.summary} |"
    )


if __name__ == "__main__":
    made = pages()
    stale = [page for page, text in made.items() if not page.exists() or page.read_text(encoding="utf-8") != text]
    outdated = sorted(set((DOCS / "schemas").glob("*.json")) - made.keys())
    if "--check" in sys.argv[1:]:
        differ = ", ".join(map(str, [*stale, *outdated]))
        sys.exit(f"run `make docs`: {differ} differ from the code" if differ else 0)
    for page in stale:
        page.write_text(made[page], encoding="utf-8")
    for page in outdated:
        page.unlink()
