"""What a plan kind answers about the bundles and brokers it considered, and the proposal that this makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import CPU, NO_ROW
from pulsar_advisor.model.cluster.namespaces import is_pulsars_own
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.decision import Figure
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes, about_brokers, no, vocabulary, yes
from pulsar_advisor.model.text.some_of import first_of
from pulsar_advisor.planning.kinds.room import NOWHERE, Place, Room, Rows
from pulsar_advisor.planning.proposals.executable import is_movable
from pulsar_advisor.planning.proposals.proposal import Answers, Move, Proposal

_BROKERS_NAMED: Final = 3


class BundleOutcome(Outcome):
    """The answers about a bundle."""

    NO_TOPICS = no("has no loaded topic: nothing would move")
    PULSARS_OWN = no("belongs to Pulsar's own namespaces, which are never moved")
    EXCLUDED = no("stays: the request excludes it, or its broker")
    NOT_NEEDED = no("stays: the goal is reached, or as near, without it")
    UNFIT = no("can't be moved: it is being split, or validation found its figures or those of its broker unfit")
    NOT_ALLOWED = no("would have to move, but no other broker is allowed")
    NO_ROOM = no("would have to move, but the least used broker allowed might reach {left:.2%}, above {right:.2%}", ">")
    MOVES = yes("moves to a broker that then reaches {left:.2%} at most, within {right:.2%}", "<=")


class BrokerOutcome(Outcome):
    """The answers about a broker."""

    UNFIT = no("not active, or its figures are incomplete or unfit: it neither gives nor takes")
    UNTOUCHED = no("keeps its bundles and takes none: {left:.2%}")
    TAKES = no("takes bundles, and reaches {left:.2%} at most, within {right:.2%}", "<=")
    GIVES = yes("gives bundles, and goes from {right:.2%} to {left:.2%}")


@dataclass(frozen=True)
class Answer:
    """What becomes of one bundle (a row)."""

    bundle: int
    outcome: BundleOutcome
    place: Place = NOWHERE
    ceiling_ratio: float = float("nan")

    @property
    def moves(self) -> bool:
        """Whether the bundle moves."""
        return self.outcome is BundleOutcome.MOVES


def fixed(room: Room, bundle: int) -> Answer | None:
    """The answer about a bundle (a row) that isn't moved whatever the goal; None for one that may be."""
    state = room.state
    if is_pulsars_own(state.namespace_of(bundle)):
        return Answer(bundle, BundleOutcome.PULSARS_OWN)
    if room.excluded[bundle]:
        return Answer(bundle, BundleOutcome.EXCLUDED)
    if state.bundles.topics[bundle] <= 0:
        return Answer(bundle, BundleOutcome.NO_TOPICS)
    is_fit = is_movable(state, bundle) and np.isfinite(state.bundles.traffic[bundle]).all()
    return None if is_fit else Answer(bundle, BundleOutcome.UNFIT)


def movable(room: Room, brokers: Sequence[int]) -> list[int]:
    """The bundles of these brokers (rows) that may move, the largest first."""
    return [row for row in room.bundles_of(brokers) if fixed(room, row) is None]


def parted(room: Room, bundles: Sequence[int]) -> tuple[list[int], list[Answer]]:
    """Those of these bundles (rows) that may move, and the answers about the others."""
    answers = [(row, fixed(room, row)) for row in bundles]
    return [row for row, answer in answers if answer is None], [answer for _, answer in answers if answer is not None]


def moved_to(room: Room, bundle: int, broker: int) -> Answer:
    """The answer about a bundle that has moved to this broker (rows), or to another if that one is forbidden."""
    among = room.allowed(bundle)
    return placed(room, bundle, among=np.array([broker]) if broker in among else among)


def placed(room: Room, bundle: int, *, among: Rows | None = None, fullest: bool = False) -> Answer:
    """The answer about a bundle (a row) that should move; if there is room for it, it has moved.

    `among`: the brokers (rows) to choose from; by default all that are allowed.
    """
    place = room.place(bundle, among, fullest=fullest)
    if place.broker != NO_ROW:
        room.move(bundle, place.broker)
        return Answer(bundle, BundleOutcome.MOVES, place, float(room.ceiling[place.broker]))
    if np.isnan(place.usage_ratio):
        return Answer(bundle, BundleOutcome.NOT_ALLOWED, place)
    return Answer(bundle, BundleOutcome.NO_ROOM, place, float(room.ceiling.max()))


def any_stays(answers: Sequence[Answer]) -> bool:
    """Whether any bundle stays that clients use and that isn't Pulsar's own."""
    return any(answer.outcome not in (BundleOutcome.NO_TOPICS, BundleOutcome.PULSARS_OWN) for answer in answers)


def proposal(
    goal: Goal,
    room: Room,
    answers: Sequence[Answer],
    figures: Mapping[str, Figure],
    caveats: Sequence[str] = (),
    why_nothing: str = "",
) -> Proposal:
    """The moves of these answers, wave after wave, then what should move and can't; `room` is as they leave it.

    `why_nothing` is the reason if nothing moves.
    """
    moving = [answer for answer in answers if answer.moves]
    wave = room.wave_numbers([(answer.bundle, answer.place.broker) for answer in moving])
    in_order = [moving[position] for position in sorted(range(len(moving)), key=lambda each: (wave[each], each))]
    moves = [_move(goal, room, answer) for answer in in_order]
    moves += [_obstructed(goal, room, answer) for answer in answers if _should_move(goal, answer)]
    counts = Counter(answer.outcome for answer in answers)
    return Proposal(
        shedder=goal.kind,
        placement="",
        moves=tuple(moves),
        answers=(
            Answers(goal.kind, "shedder", _broker_outcomes(room)),
            Answers(goal.kind, "shedder", _bundle_outcomes(answers)),
        ),
        why_nothing=None if moving else why_nothing,
        figures={
            **figures,
            "moves": len(moving),
            "waves": max(wave, default=-1) + 1,
            "clients": sum(clients(room, answer.bundle) for answer in moving),
            "not_allowed": counts[BundleOutcome.NOT_ALLOWED],
            "without_room": counts[BundleOutcome.NO_ROOM],
            "unfit": counts[BundleOutcome.UNFIT],
            "excluded": counts[BundleOutcome.EXCLUDED],
        },
        caveats=tuple(caveats),
    )


_OBSTRUCTED: Final = (BundleOutcome.UNFIT, BundleOutcome.NOT_ALLOWED, BundleOutcome.NO_ROOM)
_LEFT_ALONE: Final = (BundleOutcome.NO_TOPICS, BundleOutcome.PULSARS_OWN, BundleOutcome.EXCLUDED)


def _should_move(goal: Goal, answer: Answer) -> bool:
    """Whether a bundle that stays should move: one that the goal names, also where no kind would choose it."""
    return answer.outcome in _OBSTRUCTED or (bool(goal.bundles) and answer.outcome in _LEFT_ALONE)


def clients(room: Room, bundle: int) -> int:
    """Producers and consumers that have to connect again when a bundle (a row) moves."""
    bundles = room.state.bundles
    return int(bundles.producers[bundle] + bundles.consumers[bundle])


def _wish(room: Room, bundle: int, reason: str, destination: int = NO_ROW, obstacle: str | None = None) -> Move:
    source = int(room.state.bundles.owner[bundle])
    return Move(bundle, source, destination, reason, near_tie=False, obstacle=obstacle)


def _move(goal: Goal, room: Room, answer: Answer) -> Move:
    to = room.state.brokers.ids[answer.place.broker]
    reason = (
        f"{goal.title}: {to} then reaches {answer.place.usage_ratio:.1%} at most, within {answer.ceiling_ratio:.1%}"
    )
    return _wish(room, answer.bundle, reason, answer.place.broker)


def _obstructed(goal: Goal, room: Room, answer: Answer) -> Move:
    obstacle = None  # those of `why_move_not` are found when the plan is built
    if answer.outcome is BundleOutcome.NO_ROOM:
        obstacle = (
            f"there is no room: the least used broker allowed might reach {answer.place.usage_ratio:.1%}, above the "
            f"ceiling of {answer.ceiling_ratio:.1%}"
        )
    elif answer.outcome is BundleOutcome.NOT_ALLOWED and goal.bundles:
        obstacle = f"it may not go to {why_not_to(room, answer.bundle, *room.rows_of(goal.onto))}"
    elif answer.outcome is BundleOutcome.NOT_ALLOWED:
        obstacle = f"no other broker is allowed: {why_nowhere(room, answer.bundle)}"
    elif answer.outcome is BundleOutcome.UNFIT and not np.isfinite(room.state.bundles.traffic[answer.bundle]).all():
        obstacle = "its figures are not numbers"
    return _wish(room, answer.bundle, goal.title, obstacle=obstacle)


def why_nowhere(room: Room, bundle: int) -> str:
    """Why a bundle (a row) can't go to any other broker: a reason for the first few, and the number of the rest."""
    others = [row for row in range(len(room.state.brokers)) if row != room.owner[bundle]]
    named = "; ".join(why_not_to(room, bundle, row) for row in others[:_BROKERS_NAMED])
    more = len(others) - _BROKERS_NAMED
    return (named or "there is no other broker") + (f"; and {more} more" if more > 0 else "")


def nowhere_clause(room: Room, bundles: Sequence[int]) -> str:
    """A clause about bundles (rows), at least one, that may go to no other broker, and why the first one may not."""
    named = first_of([room.state.bundle_name(bundle) for bundle in bundles])
    return f"{named} may go to no other broker ({why_nowhere(room, bundles[0])})"


def why_not_to(room: Room, bundle: int, broker: int) -> str:
    """`broker-3:8080: reserved`: why a bundle may not go to a broker (rows)."""
    return f"{room.state.brokers.ids[broker]}: {_why_not_to(room, bundle, broker)}"


def _why_not_to(room: Room, bundle: int, broker: int) -> str:
    found = room.candidates(bundle).outcomes
    if not found.chosen()[broker]:
        return found.explain(broker)
    if not room.receives[broker]:
        return f"takes nothing: {why_closed(room, broker)}"
    topics, most = (
        room.topics[broker] + room.state.bundles.topics[bundle],
        room.settings.load_balancer_broker_max_topics,
    )
    if topics > most:
        return f"would have {topics:,} topics, and may have {most:,} (loadBalancerBrokerMaxTopics)"
    return "has more of the anti-affinity group than here, or its failure domain has"


def why_closed(room: Room, broker: int) -> str:
    """Why a broker (a row) takes nothing."""
    brokers = room.state.brokers
    if not room.fit[broker]:
        return "it isn't active, or its figures are incomplete or unfit"
    if brokers.doubtful[broker]:
        return "validation doubts what is known of it"
    if brokers.limit[broker, CPU] <= 0:
        return "it reports no CPU limit"
    return "the request names other destinations" if room.open[broker] else "the request excludes it"


def _bundle_outcomes(answers: Sequence[Answer]) -> Outcomes:
    rows = sorted(answers, key=lambda answer: answer.bundle)
    return Outcomes(
        "bundle",
        vocabulary(BundleOutcome),
        np.array([answer.bundle for answer in rows], dtype=np.int32),
        np.array([answer.outcome.value for answer in rows], dtype=np.uint8),
        np.array([answer.place.usage_ratio for answer in rows], dtype=np.float64),
        np.array([answer.ceiling_ratio for answer in rows], dtype=np.float64),
    )


def _broker_outcomes(room: Room) -> Outcomes:
    state, rows = room.state, np.arange(len(room.state.brokers), dtype=np.int32)
    bundles = np.flatnonzero(room.owner != state.bundles.owner)
    code = np.where(room.fit, BrokerOutcome.UNTOUCHED.value, BrokerOutcome.UNFIT.value).astype(np.uint8)
    code[room.owner[bundles]] = BrokerOutcome.TAKES.value
    code[state.bundles.owner[bundles]] = BrokerOutcome.GIVES.value
    before = room.usage_at_first
    after = np.where(code == BrokerOutcome.TAKES.value, room.most_of(rows), room.usage_of(rows))
    right = np.where(code == BrokerOutcome.GIVES.value, before, room.ceiling)
    return about_brokers(rows, BrokerOutcome, code, after, right)
