"""What a terminal shows of answers."""

from __future__ import annotations

from pulsar_advisor.cli.rendering import explanation_lines
from pulsar_advisor.documents.explanation import ExplanationOfSnapshot


def test_where_no_move_helps_the_verb_that_counts_brokers_is_named_and_none_is_advised() -> None:
    explanation = ExplanationOfSnapshot(
        shedder="ThresholdShedder",
        placement="LeastLongTermMessageRate",
        kind="cluster",
        name="",
        acts=False,
        sentence="ThresholdShedder leaves all bundles where they are.",
        capacity="there is one broker, at 20.0%: no bundle can go anywhere",
        acts_in_cycle=None,
        chain=(),
        flips=(),
        tried=(),
        cluster="demo",
        snapshot="20261121T083000Z",
        manifest_sha256="00",
        view="fresh",
        what_if={},
        pulsar="Pulsar itself would not act",
    )
    assert list(explanation_lines(explanation))[2] == (
        "Nothing is gained by moving bundles: there is one broker, at 20.0%: no bundle can go anywhere. "
        "What the load needs: pulsar-advisor scale"
    )
