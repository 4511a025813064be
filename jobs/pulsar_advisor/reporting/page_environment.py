"""The environment of page templates: escapes everything, keeps it printable, and refuses undefined names."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from pulsar_advisor.model.text.plain_text import printed


def page_environment() -> Environment:
    """A new environment, for a page to add its filters to."""
    return Environment(
        loader=PackageLoader("pulsar_advisor.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
