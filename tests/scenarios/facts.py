"""The facts of an answer by name, and the clauses that expectations state about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from pulsar_advisor.model.errors import AdvisorError
from scenarios.asked import Asked, GoalAnswer
from scenarios.brute_force import BruteForce
from scenarios.scenario import PORT

Facts = Mapping[str, Any]


def facts(ask: str, asked: Asked, brute: BruteForce) -> Facts:
    """What the answer to a question says. Usages are percentages; those `at best` and `at worst` of the brute force."""
    verb = ask.split()[0]
    try:
        if verb == "recommend":
            return _of_recommendation(asked)
        if verb == "scale":
            return _of_scale(asked, float(ask.rpartition(" ")[2]) / 100)
        if verb == "restart-order":
            return _of_restarts(asked)
        if verb == "lint":
            return _of_lint(asked)
        if verb == "simulate":
            return _of_simulation(asked)
        if verb == "explain":
            kind, _, name = ask.removeprefix("explain ").partition(" ")
            explained = asked.explanation(kind, name)  # type: ignore[arg-type]
            if isinstance(explained, AdvisorError):
                raise explained
            return {"words": explained.sentence, "acts": explained.acts}
        found = asked.goal(ask)
        if isinstance(found, AdvisorError):
            raise found
        return _of_goal(found, brute)
    except AdvisorError as error:
        return {"refused": True, "words": str(error)}


def _of_goal(answer: GoalAnswer, brute: BruteForce) -> Facts:
    after = brute.after(answer.moves)
    loads = {bundle.name: bundle.load for bundle in brute.scenario.bundles}
    asked_for = [after[host] for host in answer.hosts if host in after]
    return {
        "words": " ".join((answer.headline, *answer.plan.decision.caveats)),
        "outcome": answer.outcome,
        "moves": len(answer.moves),
        "splits": answer.splits,
        "clients": sum(loads[name].producers + loads[name].consumers for name in answer.moves),
        "destinations": set(answer.moves.values()),
        "bundles": set(answer.moves),
        "asked at best": 100 * max((one.lowest for one in asked_for), default=0.0),
        "asked at worst": 100 * max((one.highest for one in asked_for), default=0.0),
        "busiest at best": 100 * max((one.lowest for one in after.values()), default=0.0),
        "busiest at worst": 100 * max((one.highest for one in after.values()), default=0.0),
        "confidence": {step.confidence for step in answer.plan.steps if step.executable},
    }


def _of_recommendation(asked: Asked) -> Facts:
    found = asked.recommendation
    steps = [step for step in found.plan.steps if step.executable] if found.plan else []
    unloads = [step for step in steps if step.action == "unload"]
    return {
        "headline": found.headline,
        "words": found.words,
        "moves": len(unloads),
        "splits": len(steps) - len(unloads),
        "sources": {step.source.removesuffix(PORT) for step in unloads},
        "destinations": {str(step.destination).removesuffix(PORT) for step in unloads},
        "bundles": {step.bundle_name for step in unloads},
        "options": {option.kind for option in found.options},
        "number of options": len(found.options),
    }


def _of_scale(asked: Asked, target_ratio: float) -> Facts:
    found = asked.scale(target_ratio)
    return {
        "verdict": found.verdict,
        "words": found.sentence,
        "confidence": found.confidence,
        "brokers": found.brokers,
        "needed": {machine.title: machine.needed for machine in found.machines},
        "not safe to lose": {broker.removesuffix(PORT) for broker in found.losses_that_do_not_fit},
        "largest bundle": found.largest_bundle,
    }


def _of_restarts(asked: Asked) -> Facts:
    found = asked.restarts
    return {
        "turns": len(found.restarts),
        "first": found.restarts[0].broker.removesuffix(PORT) if found.restarts else None,
        "moves": found.moves,
        "stay": sum(one.stay for one in found.restarts),
        "highest": 100 * max((one.highest_usage_ratio for one in found.restarts), default=0.0),
    }


def _of_lint(asked: Asked) -> Facts:
    return {
        "rules": {one.rule for one in asked.lint},
        "changes": {key for one in asked.lint for key in one.change},
        "words": " ".join(one.sentence for one in asked.lint),
    }


def _of_simulation(asked: Asked) -> Facts:
    found = asked.today
    if isinstance(found, AdvisorError):
        raise found
    return {
        "ended": found.ended,
        "unloads": found.unloads,
        "splits": found.splits,
        "busiest": 100 * found.last_usage_maximum_ratio,
    }


_RELATIONS: Final[Mapping[str, Callable[[Any, str], bool]]] = {
    "is not": lambda fact, text: bool(fact != _value(text)),
    "is": lambda fact, text: bool(fact == _value(text)),
    "at least": lambda fact, text: fact is not None and bool(fact >= _value(text)),
    "at most": lambda fact, text: fact is not None and bool(fact <= _value(text)),
    "among": lambda fact, text: bool(set(fact) <= set(text.split())),
    "has no": lambda fact, text: not set(fact) & set(text.split()),
    "has": lambda fact, text: bool(set(fact) & set(text.split())),
    "say": lambda fact, text: re.search(text, str(fact), re.IGNORECASE) is not None,
}
_CLAUSE: Final = re.compile(rf"(.+?) ({'|'.join(_RELATIONS)})(?: (.+))?")


def _value(text: str) -> Any:
    return yaml.safe_load(text)


def holds(clause: str, of: Facts) -> bool:
    """Whether a clause such as `moves at least 1`, `destinations among b c` or `words say 60%` holds.

    Raises `KeyError` for a fact that the answer doesn't have: no clause holds by a slip of the pen.
    """
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        raise KeyError(f"'{clause}' is not FACT RELATION VALUE; relations are {', '.join(_RELATIONS)}")
    fact, relation, text = match.groups()
    if fact not in of:
        raise KeyError(f"'{clause}': the answer has {', '.join(of)}")
    return _RELATIONS[relation](of[fact], text or "")
