"""The preview of an upgrade in words: what changes, the effect on the cluster, and the settings that prevent it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.documents.simulation import SimulatedScore, Strategies
from pulsar_advisor.documents.upgrade import Balancer, Scores, UpgradePreview
from pulsar_advisor.model.configuration.class_names import without_package
from pulsar_advisor.model.configuration.upgrade import UpgradedSetting
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.recommendation.endings import sheds_nothing
from pulsar_advisor.reporting.figures import percent
from pulsar_advisor.reporting.futures import Future, futures, lines, notes, they_do

_SET_BY: Final = {"dynamic": "set dynamically", "file": "set in the configuration", "default": "never set"}
FINDINGS_TITLE: Final = "What `lint` would find afterwards"
PINS_TITLE: Final = "To keep today's values, add these lines to every broker's configuration before its restart"


@dataclass(frozen=True)
class SettingLine:
    """A setting that changes, or doesn't because it is set explicitly; class names without their package."""

    key: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class Outlook:
    """The cluster's outlook in one case."""

    name: str
    future: Future


@dataclass(frozen=True)
class UpgradeSection:
    """The preview as a report shows it."""

    to: str
    headline: str
    sentences: tuple[str, ...]
    changing: tuple[SettingLine, ...]
    staying: tuple[SettingLine, ...]
    others: str
    """How many settings were never set and keep their default, in words."""
    outlooks: tuple[Outlook, ...]
    marks: tuple[str, ...]
    """What the ranges and marks in the figures mean."""
    findings: tuple[str, ...]
    """What `lint` finds wrong with the settings after the upgrade but not before it."""
    pins: tuple[str, ...]
    """Lines of a `broker.conf`."""
    notes: tuple[str, ...]


def upgrade_section(preview: UpgradePreview) -> UpgradeSection:
    """The section of a report, or the answer in a terminal."""
    changing = [one for one in preview.settings if one.changes]
    staying = [one for one in preview.settings if not one.changes and one.set_by != "default"]
    others = len(preview.settings) - len(changing) - len(staying)
    outlooks = tuple(_outlooks(preview))
    return UpgradeSection(
        to=preview.to,
        headline=_headline(preview),
        sentences=tuple(_sentences(preview)),
        changing=tuple(_line(one, preview) for one in changing),
        staying=tuple(_line(one, preview) for one in staying),
        others=f"{count(others, 'other setting')} {'was' if others == 1 else 'were'} never set and "
        f"{'keeps its' if others == 1 else 'keep their'} default.",
        outlooks=outlooks,
        marks=tuple(notes(outlook.future for outlook in outlooks)),
        findings=tuple(f"{finding}." for finding in preview.findings),
        pins=tuple(f"{key}={value}" for key, value in preview.pins.items()),
        notes=tuple(_notes(preview)),
    )


def upgrade_lines(section: UpgradeSection, width: int) -> Iterator[str]:
    """The section as text; the lines to paste are whole."""
    yield section.headline
    yield from section.sentences
    for title, settings in (("Changes:", section.changing), ("Stays, because it is set:", section.staying)):
        if settings:
            yield ""
            yield title
        for line in settings:
            value = f"{line.before} → {line.after}" if line.before != line.after else line.before
            yield f"  {line.key}: {value} ({line.why})"
    yield section.others
    yield ""
    yield from lines([one.future for one in section.outlooks], width, [one.name for one in section.outlooks])
    if section.findings:
        yield from ("", f"{FINDINGS_TITLE}:", *(f"  {finding}" for finding in section.findings))
    if section.pins:
        yield ""
        yield f"{PINS_TITLE}:"
        yield from section.pins
    if section.notes:
        yield ""
        yield from section.notes


def _headline(preview: UpgradePreview) -> str:
    before, after = preview.before, preview.after
    upgrade = f"Upgrading Pulsar {before.release} to {preview.to}"
    # A milestone is judged as its release.
    if preview.judged_as and not re.match(rf"{re.escape(preview.judged_as)}(?!\d)", preview.to):
        upgrade = f"{upgrade}, judged as {preview.judged_as},"
    stays = (before.shedder, before.placement) == (after.shedder, after.placement)
    replaces = f"replaces {_strategies(before)} by {_strategies(after)}"
    changing = sum(one.changes for one in preview.settings)
    if not changing:
        return f"{upgrade} changes no setting of the load balancer{'' if stays else f', but {replaces}'}"
    if stays:
        return f"{upgrade} changes {count(changing, 'setting')} of the load balancer; {_strategies(before)} stays"
    return f"{upgrade} {replaces}"


def _strategies(balancer: Balancer) -> str:
    return combination(balancer.shedder, balancer.placement)


def _sentences(preview: UpgradePreview) -> Iterator[str]:
    before, after, pinned = preview.before, preview.after, preview.pinned
    if off := sheds_nothing(before.switched_off_by):
        yield f"{off}. Below is what it would do if switched on."
    yield f"Today, with {before.release}: {they_do(before.scores, _strategies(before))}."
    yield f"With {preview.to}: {they_do(after.scores, _strategies(after))}."
    shapes = [_shape(balancer.after_restart) for balancer in (before, after)]
    if all(shapes):
        meanwhile = f": until its own restart, the leader places as {before.release} does"
        yield (
            "A rolling restart (nothing drained, the leader last) leaves the busiest and idlest broker at "
            f"{shapes[0]}, one that upgrades to {preview.to} at {shapes[1]}"
            f"{meanwhile if before.placement != after.placement else ''}."
        )
    if pinned is not None and not all(isinstance(score, SimulatedScore) for score in (*pinned.scores, *before.scores)):
        yield f"Whether {preview.to} does the same with the lines below is unknown: it could not be simulated."
    elif pinned is not None:
        same = pinned.scores == before.scores
        yield (
            f"With the lines below, {preview.to} does what {before.release} does today."
            if same
            else f"Even with the lines below, {preview.to} does not do what {before.release} does today: it decides "
            "differently."
        )


def _shape(scores: Scores) -> str:
    """The usage of the busiest and the idlest broker before the balancer acts; empty if it could not be simulated."""
    found = [score for score in scores if isinstance(score, SimulatedScore)]
    if not found:
        return ""
    busiest = [one.first_usage_maximum_ratio for one in found]
    idlest = [one.first_usage_maximum_ratio - one.first_usage_range_ratio for one in found]
    return f"{_between(busiest)} and {_between(idlest)}"


def _between(ratios: Sequence[float]) -> str:
    least, greatest = percent(max(min(ratios), 0.0)), percent(max(ratios))
    return least if least == greatest else f"{least} to {greatest}"


def _line(one: UpgradedSetting, preview: UpgradePreview) -> SettingLine:
    why = _SET_BY[one.set_by]
    if one.changes:
        why = f"{why}; {one.origin_after}"
    if one.obsolete:
        why = f"{why}, but deprecated in {preview.to}"  # another load manager may still read it
    before, after = (without_package(text) or "(empty)" for text in (one.before, one.after))
    return SettingLine(one.key, before, after, why)


def _outlooks(preview: UpgradePreview) -> Iterator[Outlook]:
    before, after = preview.before, preview.after
    cases = [
        (f"today, {before.release}", before, before.scores),
        (f"after the upgrade, {preview.to}", after, after.scores),
    ]
    if preview.pinned is not None:
        cases.append((f"{preview.to} with today's values", preview.pinned, preview.pinned.scores))
    cases += [
        (f"after a rolling restart, {before.release}", before, before.after_restart),
        (f"after a rolling restart, {preview.to}", after, after.after_restart),
    ]
    for name, balancer, scores in cases:
        (future,) = futures(scores, Strategies(shedder=balancer.shedder, placement=balancer.placement))
        yield Outlook(name, future)


def _notes(preview: UpgradePreview) -> Iterator[str]:
    yield from preview.notes
    if not preview.configuration_known:
        yield "No broker's configuration was captured, so every value counts as never set: capture it to be sure."
    if never := [one.key for one in preview.settings if one.changes and one.set_by == "default"]:
        yield (
            f"Brokers don't report whether a value equal to {preview.before.release}'s default was set. A broker.conf "
            f"that is carried over sets {'it' if len(never) == 1 else 'most of them'}, and so keeps today's values."
        )
