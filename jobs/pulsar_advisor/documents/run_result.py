"""What `run` prints: the recommendation, and where its report is."""

from __future__ import annotations

from pulsar_advisor.documents.recommendation import Recommendation


class RunResult(Recommendation):
    """The recommendation of a `run`, and the place of its report."""

    report: str
