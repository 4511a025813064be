"""Reads from a broker's log when its shedder ran, and what it unloaded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final

from decisions.recording import Unload

CYCLE_S: Final = 60
"""The shortest interval between two cycles (`loadBalancerSheddingIntervalMinutes` is a whole number)."""
_APART_S: Final = 20
"""Lines closer than this belong to one cycle; a cycle with several unloads takes some seconds."""

_LINE: Final = re.compile(r"(?P<time>\S{23}) +\w+ +\[[^\]]*\] (?P<logger>\w+) - (?P<text>.*)")
_OF_A_CYCLE: Final = (
    r"(ThresholdShedder|OverloadShedder|UniformLoadShedder|TransferShedder) - ",
    r"UnloadScheduler - (?!Created|Error when trying to create)",
    r"AvgShedder - (?!Assignment|expected broker|Bundle format|Planned)",
    r"ModularLoadManagerImpl - (\[\w+\] )?(Unloading|No broker available to unload|The destination broker) ",
    r"SimpleLoadManagerImpl - (Running load shedding|.*[Uu]nload|HIGH USAGE)",
)
_CYCLE: Final = re.compile("|".join(_OF_A_CYCLE))
_UNLOADS: Final = (
    re.compile(r"\[\w+\] Unloading bundle: (?P<bundle>\S+) from broker (?P<source>\S+) to dest broker (?P<to>\S+)"),
    re.compile(
        r"Unloading bundle(: | \{bundle=)Unload\[sourceBroker=(?P<source>[^,]+), serviceUnit=(?P<bundle>[^,]+), "
        r"destBroker=Optional\[(?P<to>[^\]]+)\]"
    ),
    re.compile(  # from 5.0 on
        r"Unloading bundle from .* \{bundle=(?P<bundle>[^,]+), class=\w+, destBroker=(?P<to>[^,]+), "
        r"sourceBroker=(?P<source>[^,}]+)\}"
    ),
    re.compile(r"Unloading namespace (?P<bundle>\S+) from overloaded broker (?P<source>\S+)(?P<to>)"),
)


@dataclass(frozen=True)
class LoggedCycle:
    """One cycle as the leader logged it; `said` is empty where the log has a gap and a cycle must have been."""

    at_ms: int
    unloads: tuple[Unload, ...]
    said: tuple[str, ...]


def logged_cycles(logs: Iterable[Path], begun_ms: int) -> list[LoggedCycle]:
    """The cycles since `begun_ms` in the logs of all brokers, of which one leads at a time, oldest first."""
    lines = [
        line
        for log in logs
        for line in _cycle_lines(log.read_text(encoding="utf-8", errors="replace"))
        if line[0] >= begun_ms
    ]
    lines.sort(key=itemgetter(0))  # within a millisecond in the order of the log
    cycles: list[list[tuple[int, str]]] = []
    for line in lines:
        if not cycles or line[0] - cycles[-1][-1][0] > _APART_S * 1000:
            cycles.append([])
        cycles[-1].append(line)
    return _without_gaps([_cycle(group) for group in cycles])


def _cycle_lines(log: str) -> list[tuple[int, str]]:
    found = (_LINE.fullmatch(line) for line in log.splitlines() if "Shed" in line or "Load" in line)
    return [
        (_milliseconds(line["time"]), f"{line['logger']} - {line['text']}")
        for line in found
        if line is not None and _CYCLE.match(f"{line['logger']} - {line['text']}")
    ]


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text.replace(",", ".")).astimezone().timestamp() * 1000)


def _cycle(lines: list[tuple[int, str]]) -> LoggedCycle:
    said = tuple(text for _, text in lines)
    return LoggedCycle(lines[0][0], tuple(unload for text in said if (unload := _unload(text))), said)


def _unload(text: str) -> Unload | None:
    found = next((match for pattern in _UNLOADS if (match := pattern.search(text))), None)
    if found is None:
        return None
    return Unload(found["bundle"], _broker_id(found["source"]), _broker_id(found["to"]) or None)


def _broker_id(text: str) -> str:
    return text.removeprefix("http://")


def _without_gaps(cycles: list[LoggedCycle]) -> list[LoggedCycle]:
    """With the cycles in which the shedder logged nothing (UniformLoadShedder does when it finds nothing)."""
    complete = cycles[:1]
    for before, cycle in pairwise(cycles):
        gap_ms = cycle.at_ms - before.at_ms
        missing = round(gap_ms / (CYCLE_S * 1000)) - 1
        step_ms = gap_ms // (missing + 1)
        complete += [LoggedCycle(before.at_ms + number * step_ms, (), ()) for number in range(1, missing + 1)]
        complete.append(cycle)
    return complete
