"""Days of a cluster under pseudonyms: they show what happened, but no name.

Names are numbered in their order, so what is sorted by name stays sorted. Releases, times and settings are kept, except
for namespaces named in a setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pulsar_advisor.history.policies import ANTI_AFFINITY, ISOLATION, REPLICATION
from pulsar_advisor.history.ring import namespace_of

Tables = Mapping[str, pa.Table]
"""A day's tables by name; a day with earlier columns lacks some."""

_BROKER, _BUNDLE, _NAMESPACE, _POLICY, _TEXT = "broker", "bundle", "namespace", "policy", "text"
_NAMESPACES: Final = "namespaces"
"""Several namespaces, separated by commas."""
_NO_NAME: Final = ""
_NAMED_IN: Final = {
    "move": (_BUNDLE, _BROKER),
    "split": (_BUNDLE, _NO_NAME),
    "namespace_born": (_NAMESPACE, _NO_NAME),
    "namespace_gone": (_NAMESPACE, _NO_NAME),
    "broker_joined": (_BROKER, _NO_NAME),
    "broker_lost": (_BROKER, _NO_NAME),
    "broker_restarted": (_BROKER, _NO_NAME),
    "leader": (_NO_NAME, _BROKER),
    ISOLATION: (_POLICY, _TEXT),
    REPLICATION: (_NAMESPACE, _TEXT),
    ANTI_AFFINITY: (_NAMESPACE, _TEXT),
}
"""Kind of event -> the kind of name in its subject, and in its values before and after; for a setting, that depends."""
_NAMED_IN_SETTING: Final = {"loadBalancerSheddingExcludedNamespaces": _NAMESPACES}


@dataclass(frozen=True)
class Pseudonyms:
    """The pseudonym of each name."""

    called: Mapping[str, Mapping[str, str]]
    """Kind of name -> name -> pseudonym."""

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name; a bundle keeps its range."""
        if kind == _NO_NAME:
            return name
        if kind == _NAMESPACES:
            return ",".join(self.called[_NAMESPACE][one] for one in name.split(",") if one)
        if kind != _BUNDLE:
            return self.called[kind][name]
        namespace, _, bundle_range = name.rpartition("/")
        return f"{self.called[_NAMESPACE][namespace]}/{bundle_range}"

    def renamed(self, day: Tables) -> dict[str, pa.Table]:
        """The tables of a day under these names."""
        return {name: self._renamed(name, rows) for name, rows in day.items()}

    def _renamed(self, table: str, rows: pa.Table) -> pa.Table:
        kinds = _kinds(table, rows)
        for column, of_rows in kinds.items():
            names = [
                None if name is None else self.of(kind, name)
                for kind, name in zip(of_rows, rows[column].to_pylist(), strict=True)
            ]
            place = rows.schema.get_field_index(column)
            rows = rows.set_column(place, rows.schema.field(place), pa.array(names, pa.string()))
        return rows


def pseudonyms_of(days: Iterable[Tables]) -> Pseudonyms:
    """Pseudonyms for all names in some days."""
    met: dict[str, set[str]] = {kind: set() for kind in (_BROKER, _NAMESPACE, _POLICY, _TEXT)}
    for kind, name in (one for day in days for one in _names(day)):
        if kind == _BUNDLE:
            met[_NAMESPACE].add(namespace_of(name))
        elif kind == _NAMESPACES:
            met[_NAMESPACE].update(filter(None, name.split(",")))
        elif kind != _NO_NAME:
            met[kind].add(name)
    called = {kind: _numbered(kind, sorted(names)) for kind, names in met.items()}
    namespaces = sorted(met[_NAMESPACE], key=lambda name: f"{name}/")  # as their bundles are sorted
    tenants = _numbered("tenant", dict.fromkeys(name.partition("/")[0] for name in namespaces))
    numbers = _numbered(_NAMESPACE, namespaces)
    called[_NAMESPACE] = {name: f"{tenants[name.partition('/')[0]]}/{numbers[name]}" for name in namespaces}
    return Pseudonyms(called)


def _names(day: Tables) -> Iterator[tuple[str, str]]:
    """Every name in a day, with its kind."""
    for table, rows in day.items():
        for column, kinds in _kinds(table, rows).items():
            names = zip(kinds, rows[column].to_pylist(), strict=True)
            yield from ((kind, name) for kind, name in names if name is not None)


def _kinds(table: str, rows: pa.Table) -> dict[str, list[Any]]:
    """The columns of a table that hold names -> the kind of name in each row."""
    if table == "brokers":
        return {"id": [_BROKER] * len(rows)}
    if table == "names":
        return {"name": [_BUNDLE] * len(rows)}
    if table == "settings":
        return {"value": [_in_setting(key) for key in rows["key"].to_pylist()]}
    if table not in ("policies", "events"):
        return {}
    kinds = [_in_event(*of) for of in zip(rows["kind"].to_pylist(), rows["subject"].to_pylist(), strict=True)]
    subjects, ends = [subject for subject, _ in kinds], [end for _, end in kinds]
    return {"subject": subjects, **{name: ends for name in ("value", "before", "after") if name in rows.schema.names}}


def _in_event(kind: str, subject: str) -> tuple[str, str]:
    """The kind of name in an event or policy; one from a later release counts as text, so that no name gets out."""
    return (_NO_NAME, _in_setting(subject)) if kind == "setting" else _NAMED_IN.get(kind, (_TEXT, _TEXT))


def _in_setting(key: str) -> str:
    return _NAMED_IN_SETTING.get(key, _NO_NAME)


def _numbered(kind: str, names: Iterable[str]) -> dict[str, str]:
    known = list(names)
    digits = len(str(len(known)))
    return {name: f"{kind}-{number:0{digits}}" for number, name in enumerate(known, 1)}
