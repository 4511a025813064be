"""The verdict on a terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from rich.console import Console

from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.terminal import render_terminal
from pulsar_advisor.reporting.verdict import Command
from unit.reporting.skewed import Inputs, balanced_inputs, hostile_inputs, skewed_inputs


def printed(inputs: Inputs, *, terminal: bool = False, has_report: bool = False) -> str:
    return printed_page(inputs.page(), terminal=terminal, has_report=has_report)


def printed_page(page: ReportPage, *, terminal: bool = False, has_report: bool = False) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80, _environ={"TERM": "xterm"})
    render_terminal(page, console, has_report=has_report)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def strip_colours(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_the_first_line_is_the_verdict() -> None:
    inputs = skewed_inputs()
    assert printed(inputs).splitlines()[0] == inputs.page().verdict.headline


def test_the_verdict_is_green_only_where_nothing_warns() -> None:
    def colour(*findings: Finding) -> str:
        return printed(balanced_inputs().recommending(findings=findings), terminal=True)[:7]

    assert (colour(), colour(Finding("warning", "a is at 90%."))) == ("\x1b[1;32m", "\x1b[1;33m")


def test_the_three_findings_that_matter_are_there() -> None:
    inputs = skewed_inputs()
    four = inputs.recommending(findings=(*inputs.recommendation.findings, Finding("info", "a fourth")))
    lines = [line for line in printed(four).splitlines() if line.startswith("Finding")]
    assert len(lines) == 4
    assert lines[-1].split(maxsplit=1)[1] == f"1 more: see `pulsar-advisor report --snapshot {four.page().snapshot}`."
    assert "1 more: see the report." in printed(four, has_report=True)
    assert "shop/orders carries two thirds" in lines[0]


def test_what_the_verdict_says_is_no_finding_beside_it() -> None:
    inputs = skewed_inputs()
    findings = (Finding("warning", "a:8080 is down."), *inputs.recommendation.findings)
    text = printed(inputs.recommending("a:8080 is down. Do nothing.", findings=findings))
    assert text.startswith("a:8080 is down. Do nothing.")
    assert text.count("a:8080 is down.") == 1


def test_the_next_command_can_be_pasted() -> None:
    inputs = skewed_inputs()
    assert printed(inputs).endswith(inputs.page().verdict.commands[1].continued + "\n")


def test_what_a_shell_needs_comes_before_the_commands() -> None:
    page = skewed_inputs().page()
    console = Console(file=io.StringIO(), width=80)
    render_terminal(page, console, [Command("Once per shell", ("export PATH=/bin",))])
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.index("export PATH=/bin\n") < shown.index("export PULSAR_ADVISOR_ROOT")


def test_a_single_split_that_closes_nothing_has_no_impact() -> None:
    page = skewed_inputs().page()
    assert page.disturbance is not None
    split = replace(page.disturbance, calls=1, least_duration_s=0.0, topics=0, clients=0, largest_step="")
    assert "Impact" in printed_page(page)
    assert "Impact" not in printed_page(replace(page, disturbance=split))


def test_a_long_name_is_shown_whole_and_a_long_root_can_be_pasted() -> None:
    name, root = f"tenant/{'n' * 70}/0x00000000_0x80000000", f"/srv/{'r' * 80}"
    inputs = skewed_inputs().recommending(findings=(Finding("warning", f"{name} should be split"),))
    text = strip_colours(printed_page(inputs.page(root_url=root), terminal=True))
    assert f"Finding         {name}\n" in text
    assert f"\nexport PULSAR_ADVISOR_ROOT={root} PULSAR_ADVISOR_CLUSTER=test\n" in text


def test_it_is_short() -> None:
    assert len(printed(skewed_inputs()).splitlines()) <= 24
    assert len(printed(balanced_inputs()).splitlines()) <= 7


def test_the_options_come_first_numbered() -> None:
    lines = [line for line in printed(skewed_inputs()).splitlines() if line.startswith("Option")]
    assert [line.split()[1] for line in lines] == [str(number) for number in range(1, len(lines) + 1)]
    assert "Unload 2" in lines[0] and "Do nothing" in lines[-1]


def test_names_send_nothing_to_the_terminal_and_are_no_markup() -> None:
    text = printed(hostile_inputs())
    assert "\x1b" not in text
    assert "\\x1b[31m" in text
    assert "\u202e" not in text
