"""The result of `explain`: why a bundle, a broker, a namespace or a whole cluster is balanced or left alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pulsar_advisor.model.configuration.kinds import View
from pulsar_advisor.planning.questions.explain import Explanation


@dataclass(frozen=True, kw_only=True)
class ExplanationOfSnapshot(Explanation):
    """An explanation, what it is based on, and what Pulsar itself would do, switches included."""

    SCHEMA: ClassVar = "pulsar-advisor/explanation/1"

    cluster: str
    snapshot: str
    manifest_sha256: str
    view: View
    what_if: Mapping[str, str]
    pulsar: str
    caveats: tuple[str, ...] = ()
    """What a reader has to know first: other settings than the cluster's, an unknown release, load left out."""
