"""How the help shows texts and defaults, and how a usage error reads: one sentence with the word and the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cyclopts import CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import nearest

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions


_WHOLE_NUMBERS: Final = (int, int | None, tuple[int, ...] | None)


class PlainHelp:
    """Help in plain text, each paragraph filled to the terminal's width. Markdown would do that too, but to load its
    library takes as long as all the rest of an answer."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Show one group of options or commands."""
        from cyclopts.help import DefaultFormatter

        for entry in panel.entries:
            _unwrap(entry.description)
        DefaultFormatter()(console, options, panel)

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Show the line of usage."""
        from cyclopts.help import DefaultFormatter

        DefaultFormatter().render_usage(console, options, usage)

    def render_description(self, console: Console, _options: ConsoleOptions, description: Any) -> None:
        """Show what a command does."""
        _unwrap(description)
        console.print(description)


def _unwrap(text: Any) -> None:
    """Join the lines of each paragraph: they end where the source's lines do."""
    from rich.text import Text

    if isinstance(paragraphs := getattr(text, "primary_renderable", None), Text):
        paragraphs.plain = re.sub(r"(?<!\n)\n(?!\n) *", " ", paragraphs.plain)


def shown_default(value: Any) -> str | None:
    """A default as typed on the command line; None for an option that is off or unset by default."""
    if isinstance(value, bool):
        return "on" if value else None
    return None if value in (None, "", ()) else str(value)


def explained(error: CycloptsError) -> str:
    """A parser error as a sentence that names the word and the remedy."""
    match error:
        case UnusedCliTokensError(unused_tokens=[word, *_]):
            verb = " ".join(error.command_chain or ())
            remedy = nearest(word, error.app or ()) or ": omit it, or quote a value that contains spaces"
            return f"`{verb}` does not take '{word}'{remedy}"
        case MissingArgumentError(argument=argument, keyword=keyword) if argument is not None:
            if keyword is not None:
                return _without_a_value(keyword, error.root_input_tokens or ())
            name = argument.name if argument.name.startswith("-") else argument.name.upper()
            return f"{name} is missing"
        case CoercionError(token=token, target_type=wanted) if token is not None and wanted in _WHOLE_NUMBERS:
            return f"{token.keyword} '{token.value}' is not a whole number"
        case CoercionError(token=token, target_type=wanted) if token is not None and wanted is float:
            return f"{token.keyword} '{token.value}' is not a number"
    return str(error)


def _without_a_value(option: str, words: Sequence[str]) -> str:
    """The error for `--pause-between -5s` and `--pause-between --resume`: a leading dash marks an option."""
    after = words[words.index(option) + 1 :] if option in words else ()
    if after and after[0].startswith("-"):
        return f"{option} requires a value, and '{after[0]}' is not one: a value can't begin with a dash"
    return f"{option} requires a value"


def refuse_together(given: Mapping[str, bool]) -> None:
    """Refuse mutually exclusive options: at most one may be given. Raises `UsageError`."""
    together = [option for option, is_given in given.items() if is_given]
    if len(together) > 1:
        raise UsageError(f"{' and '.join(together)} can't be combined: give only one of them")
