"""Plans for goals on a live cluster, from a capture to where the bundles then are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.shell import QUICK, Shell

MISSES_ALLOWED = 2
"""A destination is a wish under the Modular manager: about one in ten is missed."""
DONE = (0, 6)
"""The goal may be reached only in part."""


@dataclass(frozen=True)
class CarriedOut:
    """A plan that was applied, and the bundles (full names) that aren't on the broker that it names."""

    plan: dict[str, Any]
    astray: frozenset[str]

    @property
    def unloads(self) -> list[dict[str, Any]]:
        return executable(self.plan, "unload")


def executable(plan: dict[str, Any], action: str) -> list[dict[str, Any]]:
    return [step for step in plan["steps"] if step["executable"] and step["action"] == action]


def full_name(step: dict[str, Any]) -> str:
    """The bundle of a step."""
    return f"{step['namespace']}/{step['bundle']}"


def judge(shell: Shell) -> None:
    """Capture, normalize and validate."""
    for stage in (("capture", *shell.connection), ("normalize",), ("validate",)):
        done = shell(*stage)
        assert done.code == 0, done.err


def carry_out(cluster: LiveCluster, shell: Shell, *goal: str, consents: tuple[str, ...] = ()) -> CarriedOut:
    """The plan for a goal on the snapshot that was judged last, approved and applied."""
    made = shell(*goal, "--as", "olive", "--json")
    assert made.code in DONE, made.err
    digest = made.document["advice"]["digest"]
    assert digest is not None, made.out
    print(f"\n{made.document['advice']['sentence']}")
    (plan,) = [plan for plan in shell.plans() if plan["digest"] == digest]
    consents = (*consents, "--accept-worse", "--accept-low-confidence")
    budget = ("--error-budget", str(len(plan["steps"])))
    agreed = shell("approve", digest, "--as", "bob", *consents, *QUICK, *budget)
    assert agreed.code == 0, agreed.err
    applied = shell("apply", digest, *shell.connection)
    owners = cluster.admin.owners(CLUSTER_NAME)
    moves = executable(plan, "unload")
    astray = frozenset(full_name(step) for step in moves if owners.get(full_name(step)) != step["destination"])
    assert applied.code in ([5] if astray else DONE), applied.out + applied.err
    assert len(astray) <= MISSES_ALLOWED, applied.out
    print(f"{len(moves) - len(astray)} of {len(moves)} arrived")
    return CarriedOut(plan, astray)
