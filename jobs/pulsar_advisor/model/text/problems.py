"""What is wrong with a document that pydantic refused, in words; never its values, which may be misplaced secrets."""

from __future__ import annotations

from pydantic import ValidationError


def problems(error: ValidationError) -> list[str]:
    """`field.of.document: reason` for each problem; the reason alone where it concerns the whole document."""
    return [
        ": ".join(filter(None, (".".join(map(str, problem["loc"])), problem["msg"].removeprefix("Value error, "))))
        for problem in error.errors(include_input=False, include_url=False)
    ]
