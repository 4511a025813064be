"""The fault server answers unloads and splits as recorded brokers did, hop by hop, and they do the same to it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from faults.cluster import Answer, Call, Cluster
from faults.puts import BOUNDARIES, MIDDLE, PUTS, RANGE, Part, Put, Reply, as_documents, hops
from harness.record_puts import RECORDED
from pulsar_advisor.model.cluster.bundle_range import topic_hash

NAMESPACE = "puts/case"
PARTS: Mapping[Part, str] = {"leader": "127.0.0.1:1", "owner": "127.0.0.2:2", "other": "127.0.0.3:3"}
CLUSTERS = json.loads(RECORDED.read_text())


def scene(put: Put, recorded: Mapping[str, Any]) -> Cluster:
    names = (f"persistent://{NAMESPACE}/topic-{number}" for number in itertools.count())
    inside = (name for name in names if topic_hash(name) < BOUNDARIES[1])
    cluster = Cluster(
        tuple(PARTS.values()),
        lambda: 0.0,
        Random(0),
        manager=recorded["load_manager"],
        release=recorded["release"],
        boundaries={NAMESPACE: sorted({*BOUNDARIES, *([MIDDLE] if put.was_split else [])})},
        topics={
            NAMESPACE: list(itertools.islice((one for one in inside if topic_hash(one) < BOUNDARIES[1]), put.topics))
        },
        leader=PARTS["leader"],
    )
    if not put.owned:  # whoever asks for a broker gets the one that the live leader chose
        cluster.wishes[RANGE] = next((PARTS[part] for part in inside_range(recorded["puts"][put.name]).values()), "")
    cluster.idle = set(cluster.bundles(NAMESPACE))
    if put.owned and not put.was_split:
        cluster.owners[f"{NAMESPACE}/{RANGE}"] = PARTS["owner"]
    elif put.owned:
        cluster.owners |= dict.fromkeys(cluster.bundles(NAMESPACE)[:2], PARTS["owner"])
    return cluster


def inside_range(live: Mapping[str, Any]) -> dict[str, Part]:
    """Owners of what the range in question holds. Clients of a system topic bring other bundles back by themselves."""
    return {text: part for text, part in live["owners"].items() if int(text[:10], 16) < BOUNDARIES[1]}


def reply(answer: Answer, path: str) -> Reply:
    reason = "" if answer.document is None else str(answer.document["reason"])
    if answer.to is None:
        return Reply(answer.status, reason)
    query = "&".join(f"{key}={value}" for key, value in answer.query.items())
    return Reply(answer.status, reason, f"http://{answer.to}{path}?{query}")


@pytest.mark.parametrize("put", PUTS, ids=lambda put: put.name)
@pytest.mark.parametrize("recorded", CLUSTERS, ids=lambda one: f"{one['release']}-{one['load_manager']}")
def test_a_put_is_answered_and_acts_as_on_live_brokers(recorded: Mapping[str, Any], put: Put) -> None:
    cluster, live = scene(put, recorded), recorded["puts"][put.name]
    namespace = {"there": NAMESPACE, "missing": "puts/missing", "of a missing tenant": "nowhere/missing"}[put.namespace]

    found = hops(
        put, namespace, PARTS, lambda broker, path, query, body: reply(
            cluster.answer(Call(broker, "PUT", path, query, body)), path
        ),
    )  # fmt: skip

    assert promised(as_documents(found)) == promised(live["hops"])
    assert [f"0x{bound:08x}" for bound in cluster.boundaries[NAMESPACE]] == live["boundaries"]
    names = {broker: part for part, broker in PARTS.items()}
    owners = {bundle.rpartition("/")[2]: names[broker] for bundle, broker in cluster.owners.items()}
    assert owners == inside_range(live)


def promised(answered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Everything but the wording of errors, which names classes and namespaces."""
    return [{key: value for key, value in hop.items() if key != "reason"} for hop in answered]
