"""The verb `explain`: why Pulsar does what it does with a bundle, a broker, a namespace or the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pulsar_advisor.cli.options import Json, SnapshotId, WholeNumber, WholeNumberIfAny
from pulsar_advisor.cli.output import print_json, say_lines
from pulsar_advisor.cli.places import Place
from pulsar_advisor.cli.rendering import explanation_lines
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.storage.root import LATEST

if TYPE_CHECKING:
    from pulsar_advisor.planning.questions.subject import Kind


def explain(
    *,
    place: Place = Place(),
    snapshot: SnapshotId = LATEST,
    bundle: str | None = None,
    broker: str | None = None,
    namespace: str | None = None,
    shedder: str = "configured",
    placement: str = "configured",
    set: tuple[str, ...] = (),
    view: Literal["judged", "fresh", "published"] = "judged",
    history: WholeNumberIfAny = None,
    seed: WholeNumber = 0,
    json: Json = False,
) -> None:
    """Say why a bundle, a broker or a namespace is moved or left alone, and which smallest change would alter that.

    Without any of them, the question is about the whole cluster: why does Pulsar do something, or nothing?

    Parameters
    ----------
    bundle
        Full name of a bundle, tenant/namespace/0x00000000_0x40000000, or of a topic or partition in it.
    broker
        Id of a broker, or the beginning of its host name up to a dot.
    namespace
        Name of a namespace: tenant/namespace.
    shedder
        A shedder by Pulsar's class name, or 'configured' for the cluster's own.
    placement
        A placement strategy by Pulsar's class name, or 'configured' for the cluster's own.
    set
        What-if value for a Pulsar setting: KEY=VALUE; repeatable.
    view
        Which figures to explain, as for `recommend`.
    history
        How many earlier snapshots the shedder learns from; by default those within the grace period of unloads.
    seed
        Seed for Pulsar's random choices.
    """
    from pulsar_advisor.planning.requests.request import ALL, Request, what_if

    named: dict[Kind, str | None] = {"bundle": bundle, "broker": broker, "namespace": namespace}
    refuse_together({f"--{kind}": name is not None for kind, name in named.items()})
    if ALL in (shedder, placement):
        raise UsageError("one combination can be explained at a time: name --shedder and --placement, or neither")
    request = Request(shedder=shedder, placement=placement, what_if=what_if(set), view=view, history=history, seed=seed)
    chosen = place.at(snapshot)
    from pulsar_advisor.stages.explain import run

    kind, name = next(((kind, name) for kind, name in named.items() if name is not None), ("cluster", ""))
    explanation = run(chosen, request, kind, name)
    print_json(explanation) if json else say_lines(explanation_lines(explanation))
