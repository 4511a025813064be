"""What the pages of strategies say about the settings they read: the defaults by release, and what takes a restart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypedDict

import pulsar_advisor.model.configuration
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.entry import Strategy

_FILE = Path(pulsar_advisor.model.configuration.__path__[0]) / "defaults_by_version.json"


class _Setting(TypedDict):
    default: bool | int | float | str | list[str]
    dynamic: bool


_Releases = Mapping[str, Mapping[str, _Setting]]
"""Release, the oldest first -> key -> what it is there."""


def tables_of_settings(entries: Iterable[Strategy]) -> dict[str, str]:
    """Name of a strategy -> the table of what it reads, but for the weights; one that reads nothing has none.

    A shedder and a placement strategy of one name are one class, with one page.
    """
    keys: dict[str, list[str]] = {}
    since: dict[str, str] = {}
    for entry in entries:
        keys.setdefault(entry.name, []).extend(key for key in entry.setting_keys if key not in WEIGHT_KEYS)
        since[entry.name] = entry.first_release
    return {name: _table(list(dict.fromkeys(own)), since[name]) for name, own in keys.items() if own}


def table_of_weights() -> str:
    """The same for the weights of the resources, which most strategies read."""
    return _table(WEIGHT_KEYS)


def _table(keys: Sequence[str], since: str = "") -> str:
    """The defaults of these keys in the listed releases that are not older than `since`."""
    listed: _Releases = json.loads(_FILE.read_text(encoding="utf-8"))
    releases = {release: of_release for release, of_release in listed.items() if _number(release) >= _number(since)}
    rows = [f"| `{key}` | {_defaults(key, releases)} |" for key in keys]
    return "\n".join(["| setting | default |", "| -- | -- |", *rows])


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))


def _defaults(key: str, releases: _Releases) -> str:
    """`1, from 3.3.6 on 0`: each default with the first listed release that has it, but for the oldest."""
    of_key = [(release, keys[key]) for release, keys in releases.items() if key in keys]
    changes = [next(same) for _, same in groupby(of_key, key=lambda each: each[1]["default"])]
    oldest = next(iter(releases))
    texts = [
        f"{'' if release == oldest else f'from {release} on '}{_text(setting['default'])}"
        for release, setting in changes
    ]
    return ", ".join(texts) + ("" if of_key[-1][1]["dynamic"] else "; read at start only")


def _text(default: bool | int | float | str | list[str]) -> str:
    match default:
        case bool():
            return str(default).lower()
        case list():
            return ", ".join(default) or "none"
        case float():
            return f"{default:g}"
    return str(default)
