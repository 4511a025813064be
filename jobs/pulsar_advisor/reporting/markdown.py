"""The report as Markdown for a ticket or a pull request: the verdict, the steps, and the evidence for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.reporting.cut import cut_for_readers
from pulsar_advisor.reporting.figures import count, message_rate, percent, sentence, throughput
from pulsar_advisor.reporting.futures import HEADINGS, cells
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.steps import StepView
from pulsar_advisor.reporting.upgrade import FINDINGS_TITLE, PINS_TITLE

_MARKUP = re.compile(r"[\\`*\[\]<>|&~#]|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=\bwww)\.")
_HOT_BROKERS: Final = 5
_HOT_BUNDLES: Final = 3


def render_markdown(page: ReportPage) -> str:
    """GitHub-flavoured Markdown; names from the cluster can't become markup."""
    return "\n".join(_lines(cut_for_readers(page))) + "\n"


def _lines(page: ReportPage) -> Iterator[str]:
    verdict = page.verdict
    yield f"# {text(verdict.headline)}"
    if verdict.goal:
        yield ""
        yield f"**{text(verdict.goal)}**"
    yield ""
    yield (
        f"Cluster {code(page.cluster)}, snapshot {code(page.snapshot)}, captured {page.captured_at}, "
        f"{count(page.brokers.total, 'broker')}, Pulsar {text(page.pulsar_version)}, {page.load_manager} load manager."
    )
    yield ""
    if verdict.confidence:
        yield f"* **Confidence:** {verdict.confidence}"
    yield from (f"  * {count(doubt.number, 'step')}: {text(doubt.text)}" for doubt in verdict.doubts)
    for warning in verdict.warnings:
        yield f"* **Worse outcome:** {text(warning)}"
    if verdict.pulsar:
        yield f"* **Own balancer:** {text(sentence(verdict.pulsar))}"
    if verdict.accuracy:
        yield f"* **Predictions:** {text(verdict.accuracy)}"
    if verdict.strategy:
        yield f"* **Strategy:** {text(verdict.strategy)}"
    for tally in verdict.not_executable:
        yield f"* **Not executable:** {count(tally.number, 'step')}: {text(sentence(tally.text))}"
    for line in page.disturbance.sentences if page.disturbance is not None else ():
        yield f"* {text(line)}"
    yield f"* **Coverage:** {text(page.trust.coverage.sentence)}"
    for finding in page.findings:
        yield f"* **{finding.severity.capitalize()}:** {text(finding.sentence)}"
    for command in verdict.commands:
        yield from ("", f"{text(command.purpose)}:", "", "```sh", *map(plain, command.continued.splitlines()), "```")
    yield from _options(page)
    yield from _brokers(page)
    yield from _hot(page)
    yield from _steps(page)
    yield from _left_alone(page)
    yield from _whats_next(page)
    yield from _upgrade(page)
    yield from _combinations(page)
    yield from _trust(page)
    yield from _settings(page)
    yield from _section("Provenance")
    yield from (f"* {fact.label}: {code(fact.value)}" for fact in page.provenance)


def _section(title: str) -> tuple[str, ...]:
    return ("", f"## {title}", "")


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """A table whose cells are Markdown already. A column whose title starts with `>` is right-aligned."""
    yield f"| {' | '.join(title.removeprefix('>') for title in header)} |"
    yield f"|{'|'.join('---:' if title.startswith('>') else '---' for title in header)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _cut(shown: int, total: int, noun: str) -> tuple[str, ...]:
    return ("", f"{shown:,} of {count(total, noun)} shown.") if total > shown else ()


def _options(page: ReportPage) -> Iterator[str]:
    if page.options is None or not page.options.rows:
        return
    yield from _section("Options")
    yield from _table(
        (">No.", "Option", "Effect", "Cost", "Confidence", "Holds if"),
        (
            (
                str(number),
                (f"**{text(option.sentence)}**" if option.advised else text(option.sentence))
                + (f" {code(option.plan)}" if option.plan else ""),
                text(option.effect),
                text(option.cost),
                option.confidence or "",
                text(option.condition),
            )
            for number, option in enumerate(page.options.rows, 1)
        ),
    )
    if page.options.tradeoffs:
        yield ""
        yield from _table(
            (">Option", "Plan", ">Highest usage", ">Unloads", ">Topics and clients", "On the front"),
            (
                (
                    one.label,
                    f"**{text(one.name)}**" if one.advised else text(one.name),
                    percent(one.maximum_ratio),
                    f"{one.unloads:,}",
                    f"{one.disturbed:,}",
                    "yes" if one.on_front else "",
                )
                for one in page.options.tradeoffs
            ),
        )
    for note in page.options.notes:
        yield from ("", text(note))


def _brokers(page: ReportPage) -> Iterator[str]:
    yield from _section("Brokers before and after")
    yield from _table(
        ("Broker", ">Usage now", ">Predicted", ">Range", ">Bundles", ">Messages", ">Throughput"),
        (
            (
                code(row.id) + (f" ({', '.join(row.marks)})" if row.marks else ""),
                percent(row.before_ratio),
                percent(row.after_ratio),
                _range(row.after_range),
                f"{row.bundles_before:,}"
                + (f" → {row.bundles_after:,}" if row.bundles_after != row.bundles_before else ""),
                message_rate(row.msg_rate_per_s),
                throughput(row.throughput_bytes_per_s),
            )
            for row in page.brokers.rows
        ),
    )
    yield from _cut(len(page.brokers.rows), page.brokers.total, "broker")
    yield from ("", f"Predicted: {text(page.brokers.predicted)}.")
    for line in page.brokers.thresholds:
        yield from ("", f"{line.label.capitalize()}: {percent(line.ratio)}.")


def _range(expected: tuple[float, float] | None) -> str:
    return f"{percent(expected[0])} to {percent(expected[1])}" if expected else ""


def _hot(page: ReportPage) -> Iterator[str]:
    yield from _section("What makes each broker hot")
    shown = page.hot[:_HOT_BROKERS]
    if not any(hot.bundles for hot in shown):
        yield "No bundle with traffic."
        return
    yield from _table(
        ("Broker", "Bundle", ">Messages", ">of broker", ">Throughput", ">of broker", "In plan"),
        (
            (
                code(hot.broker.id),
                code(share.name),
                message_rate(share.msg_rate_per_s),
                percent(share.msg_rate_share),
                throughput(share.throughput_bytes_per_s),
                percent(share.throughput_share),
                share.step or "",
            )
            for hot in shown
            for share in hot.bundles[:_HOT_BUNDLES]
        ),
    )
    listed = sum(len(hot.bundles[:_HOT_BUNDLES]) for hot in shown)
    if (total := sum(hot.bundles_total for hot in shown)) > listed:
        yield from ("", f"{listed:,} of these brokers' {count(total, 'bundle')} shown: the largest of each.")
    yield from _cut(len(shown), page.brokers.total, "broker")


def _steps(page: ReportPage) -> Iterator[str]:
    if page.unloads.total:
        yield from _section("Unloads")
        yield from _table(
            ("Step", "Bundle", "From", "To", ">Messages", ">Throughput", "Confidence", "Reason"),
            (_unload(view) for view in page.unloads.shown),
        )
        yield from _cut(len(page.unloads.shown), page.unloads.total, "unload")
    if page.splits.total:
        yield from _section("Splits (can't be undone)")
        yield from _table(
            ("Step", "Bundle", "Broker", "Boundaries", "Children's topics and messages", "Confidence", "Reason"),
            (_split(view) for view in page.splits.shown),
        )
        yield from _cut(len(page.splits.shown), page.splits.total, "split")


def _bundle(view: StepView) -> str:
    return code(f"{view.step.namespace}/{view.step.bundle}")


def _usage(view: StepView, broker: str) -> str:
    for effect in view.effects:
        if effect.broker == broker and view.step.executable:
            return f" {percent(effect.before_ratio)} → {percent(effect.after_ratio)}"
    return ""


def _verdict_on(view: StepView) -> str:
    return view.step.confidence if view.step.executable else "not executable"


def _reason(view: StepView) -> str:
    because = view.step.not_executable_because
    obstacle = "" if view.step.executable or because is None else f"{text(sentence(because))} "
    doubts = view.doubts if view.step.executable else ""
    more = " ".join(filter(None, (view.condition, doubts, view.checks)))
    return f"{obstacle}{text(sentence(view.step.reason))} {text(more)}".rstrip()


def _unload(view: StepView) -> tuple[str, ...]:
    step = view.step
    return (
        step.id,
        _bundle(view),
        code(step.source) + _usage(view, step.source),
        "chosen by Pulsar" if step.destination is None else code(step.destination) + _usage(view, step.destination),
        message_rate(step.expect.msg_rate_per_s),
        throughput(step.expect.throughput_bytes_per_s),
        _verdict_on(view),
        _reason(view),
    )


def _split(view: StepView) -> tuple[str, ...]:
    children = (
        f"{code(child.range)} {count(child.topics, 'topic')}, {message_rate(child.msg_rate_per_s)}"
        for child in view.children
    )
    boundaries = ", ".join(map(code, view.step.boundaries))
    return (
        view.step.id,
        _bundle(view),
        code(view.step.source),
        boundaries,
        "; ".join(children),
        _verdict_on(view),
        _reason(view),
    )


def _left_alone(page: ReportPage) -> Iterator[str]:
    if page.refusals:
        yield from _section("What could not be judged")
        yield from (
            f"* {text(row.strategy)} as {text(row.role)}: {code(row.missing)} is missing ({text(row.reason)})."
            for row in page.refusals
        )
    yield from _section("What was considered and left alone")
    yield from (f"* {text(silence.shedder)}: {text(sentence(silence.why))}" for silence in page.answers.silences)
    for answers in page.answers.strategies:
        name = answers.strategy if answers.role == "shedder" else f"{answers.strategy} as {answers.role}"
        yield from ("", f"### {text(name)}", "")
        yield from _table(
            ("Outcome", ">Number", "Example"),
            (
                (
                    code(group.code) + (" (chosen)" if group.chosen else ""),
                    f"{group.number:,}",
                    f"{code(group.examples[0].object)}: {text(group.examples[0].sentence)}",
                )
                for group in (*answers.brokers, *answers.bundles)
            ),
        )
        if answers.near_ties_total:
            yield from ("", f"{count(answers.near_ties_total, 'decision')} decided by a near-tie.")
    if page.answers.strategies_total > len(page.answers.strategies):
        yield from ("", f"{len(page.answers.strategies)} of {page.answers.strategies_total} strategies shown.")


def _whats_next(page: ReportPage) -> Iterator[str]:
    if page.next is None:
        return
    yield from _section("What happens next")
    yield from (f"* {text(line)}" for line in page.next.sentences)
    if len(page.next.cycles) > 1:
        yield ""
        yield from _table(
            (">Cycle", ">Unloads", ">Splits", ">Highest usage", ">Standard deviation"),
            (
                (
                    str(cycle.cycle or "now"),
                    f"{cycle.unloads:,}",
                    f"{cycle.splits:,}",
                    percent(cycle.maximum_ratio),
                    percent(cycle.standard_deviation_ratio),
                )
                for cycle in page.next.cycles
            ),
        )


def _upgrade(page: ReportPage) -> Iterator[str]:
    upgrade = page.upgrade
    if upgrade is None:
        return
    yield from _section(f"Upgrade to {text(upgrade.to)}")
    yield from (f"* {text(line)}" for line in (f"{upgrade.headline}.", *upgrade.sentences, *upgrade.notes))
    yield ""
    yield from _table(
        ("Case", "Outcome", *(f">{heading}" for heading in HEADINGS)),
        (
            (text(one.name), text(one.future.ends), *(cells(one.future) or ("",) * len(HEADINGS)))
            for one in upgrade.outlooks
        ),
    )
    yield ""
    yield from (f"* {text(mark)}" for mark in upgrade.marks)
    yield ""
    yield from _table(
        ("Setting", "Now", "After", "Why"),
        (
            (code(one.key), code(one.before), code(one.after), text(one.why))
            for one in (*upgrade.changing, *upgrade.staying)
        ),
    )
    yield from ("", text(upgrade.others))
    if upgrade.findings:
        yield from ("", f"{FINDINGS_TITLE}:", "", *(f"* {text(finding)}" for finding in upgrade.findings))
    if upgrade.pins:
        yield from ("", f"{PINS_TITLE}:", "", "```", *map(plain, upgrade.pins), "```")


def _combinations(page: ReportPage) -> Iterator[str]:
    yield from _section("Strategies compared")
    yield from _table(
        ("Shedder", "Placement", ">Unloads", ">Splits", ">Highest usage", ">Standard deviation", ">Moved", "Note"),
        (
            (
                (f"**{text(row.shedder)}** (advised)" if row.advised else text(row.shedder))
                + (" (configured)" if row.configured else ""),
                text(row.placement),
                f"{row.unloads:,}",
                f"{row.splits:,}",
                f"{percent(row.maximum_before)} → {percent(row.maximum_after)}",
                f"{percent(row.standard_deviation_before)} → {percent(row.standard_deviation_after)}",
                throughput(row.moved_throughput_bytes_per_s),
                text(row.remark),
            )
            for row in page.combinations
        ),
    )


def _trust(page: ReportPage) -> Iterator[str]:
    yield from _section("Data checks")
    yield f"{text(page.trust.coverage.sentence)} {count(len(page.trust.passed), 'check')} passed."
    yield ""
    for check in page.trust.not_evaluated:
        yield f"* **Not evaluated** ({check.severity}): {text(check.title)}: {text(check.error or '')}"
    for check in page.trust.failed:
        yield (
            f"* **Failed** ({check.severity}): {text(check.title)}, {count(check.failed_rows, 'row')}. "
            f"{text(sentence(check.action))}"
        )
    if page.drift is not None:
        yield from _section("Drift since the last good snapshot")
        yield from (f"* {text(change)}" for change in page.drift or ("Nothing changed.",))


def _settings(page: ReportPage) -> Iterator[str]:
    overrides = [row for row in page.settings if row.overrides]
    yield from _section("Settings")
    for finding in page.lint:
        effect = page.lint_effects.get(finding.rule)
        tried = f" Simulated: {effect}." if effect else ""
        yield f"* **{finding.severity.capitalize()}:** {text(f'{finding.sentence}. Remedy: {finding.remedy}.{tried}')}"
    if page.lint:
        yield ""
    if not overrides:
        yield "No what-if or dynamic value is in effect."
        return
    yield from _table(
        ("Key", "Value", "Origin"), ((code(row.key), code(row.value), text(row.origin)) for row in overrides)
    )


def text(value: str) -> str:
    """The sentence, escaped so that nothing in it acts as markup or a link."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", plain(value))


def code(value: str) -> str:
    """A name as a code span, safe within a table, whatever backticks and bars it contains."""
    value = plain(value)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", value)), default=0) + 1)
    padding = " " if value.startswith("`") or value.endswith("`") or not value else ""
    return f"{fence}{padding}{value}{padding}{fence}".replace("|", "\\|")
