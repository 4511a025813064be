"""Bundles that are where their isolation policies forbid them, or that no broker may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.model.cluster.namespaces import of_users
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.placement.filters import placement_facts, policy_candidates
from pulsar_advisor.planning.advice.verbs import Verbs
from pulsar_advisor.planning.situation import Situation

_MOST_PLANNED_FOR: Final = 500
"""Bundles above which `conform` isn't asked: of some thousands its plan takes a minute."""


def isolation_sentences(situation: Situation, verbs: Verbs) -> Iterator[str]:
    """A sentence about the users' bundles that isolation policies allow on no registered broker, be it fit or not, and
    one about those on brokers where policies forbid them."""
    state, settings = situation.fit, situation.settings.values
    if not state.isolation_policies:
        return
    facts = placement_facts(state, settings)
    bundles, available = state.bundles, state.brokers.available
    users = of_users(state.namespaces.names)
    served = np.flatnonzero((bundles.owner != NO_ROW) & available[bundles.owner] & users[bundles.namespace])
    # Bundles of one namespace that hold a non-persistent topic, and those that don't, have the same allowed brokers.
    kinds, kind_of = np.unique(2 * bundles.namespace[served] + facts.non_persistent[served], return_inverse=True)
    allowed = np.array(
        [policy_candidates(facts, kind // 2, non_persistent=bool(kind % 2)) for kind in kinds.tolist()], dtype=np.bool_
    ).reshape(len(kinds), len(available))
    # All fit brokers are registered, so only what none of them may have is matched again.
    registered = facts.after_moves(situation.state)
    somewhere = np.array(
        [
            row.any() or policy_candidates(registered, kind // 2, non_persistent=bool(kind % 2)).any()
            for kind, row in zip(kinds.tolist(), allowed, strict=True)
        ],
        dtype=np.bool_,
    )[kind_of]
    lost = served[~somewhere].tolist()
    is_outside = somewhere & ~allowed[kind_of, bundles.owner[served]]
    outside = served[is_outside].tolist()
    if lost:
        of = dict.fromkeys(map(state.namespace_of, lost))
        yield (
            f"Isolation policies allow {some_of(of)} on no registered broker: once unloaded, as when its broker stops, "
            f"{'its bundle' if len(lost) == 1 else f'each of {len(lost):,} bundles'} can't be assigned, and clients "
            "can't reach its topics. Correct the policy (it matches host names, without port), or bring its brokers "
            "back."
        )
    if outside:
        conform = Goal("conform")
        remedy = f"; {verbs.command(conform)} says which can move"
        if len(outside) <= _MOST_PLANNED_FOR:
            plan = verbs.plan_for(conform)
            remedy = f"; {verbs.command(conform)} plans the moves" if plan is not None and plan.unloads else ""
        named = some_of([f"{state.bundle_name(row)} on {state.brokers.ids[bundles.owner[row]]}" for row in outside])
        yield (
            f"{count(len(outside), 'bundle')} {'is' if len(outside) == 1 else 'are'} where isolation policies forbid "
            f"it: {named}. Pulsar applies them only when it assigns a bundle{remedy}."
        )
