"""split: the splits without which no moves bring every broker within a usage, and where the children go.

While brokers remain above the target however bundles move, the largest bundle of each is cut where its load is divided
most evenly by its topics' hashes, else the largest that moved, and moves are chosen again. A boundary between two
children that stay together is left out, so what remains is needed. Never cut: a bundle whose load is one topic's, one
whose topics aren't all known, and one whose namespace has its maximum number of bundles. The Extensible manager cuts a
bundle in two, not in more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, floor
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState, Indices, Integers
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.decision import Figure, Split
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.kinds.answers import Answer, BundleOutcome, clients, movable, proposal
from pulsar_advisor.planning.kinds.choosing import Choice, fewest_within, movable_above, target_of
from pulsar_advisor.planning.kinds.room import ROOM_KEYS, ROOM_READS, Place, Room, Rows
from pulsar_advisor.planning.proposals.executable import SPECIFIED_POSITIONS, why_never_split
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.usage.lower_bound import lowest_usage
from pulsar_advisor.planning.usage.scalable_topics import awaited_split
from pulsar_advisor.splitting.cluster_bundles import bundle_counts, bundle_topics
from pulsar_advisor.splitting.division import divided
from pulsar_advisor.splitting.even_cut import NoCut, even_cut
from pulsar_advisor.splitting.limits import LEAST_TOPICS

READS: Final[frozenset[Input]] = ROOM_READS | {"topic_names", "topic_traffic"}
SETTING_KEYS: Final = (*ROOM_KEYS, "loadBalancerNamespaceMaximumBundles", "supportedNamespaceBundleSplitAlgorithms")

_MOST_TRIED: Final = 3
"""Bundles of a broker that are looked at for a cut: a smaller one wouldn't bring it below the target."""
_MOST_NAMED: Final = 3
"""Bundles that can't be cut, named in the caveats."""
_MOST_ROUNDS: Final = 12
"""A bundle is cut into at most two to the power of this many children."""
_MOST_FOR_ROOM: Final = 2
"""How often a bundle that moved is cut, as it may take the room; each is another search."""
_DIGITS: Final = 9
"""Of usages that are compared: sums of the same parts differ in the last ones, and a cut can't be undone."""


@dataclass(frozen=True, eq=False)
class _Divided:
    """The room once some bundles have been cut; `origin` is the row, as found, that each bundle comes from."""

    room: Room
    origin: Indices


@dataclass(frozen=True, eq=False)
class _Found:
    """What cuts and moves do for a target, beside what moves alone do."""

    by_moves: Choice
    now: _Divided
    choice: Choice
    refused: Mapping[str, str]
    """The bundles that can't be cut, and why."""

    @property
    def helps(self) -> bool:
        """Whether some cut bundle's parts end on different brokers and leave the busiest less used than moves do."""
        lower = self.choice.after.highest_ratio() < self.by_moves.after.highest_ratio()
        return not self.by_moves.reached and lower and _boundaries(self.now, self.choice.after) > 0


def propose(goal: Goal, room: Room) -> Proposal:
    """The splits and moves that bring every broker within the target of the goal; none if moves alone do."""
    target = target_of(goal, room)
    least = lowest_usage(room.state, room.settings, room.base.least)
    if least is not None and least.by_parts > target:  # even if all CPU goes with the messages
        at = f"{least.by_parts:.1%}, above {target:.1%}"
        why = f"even if load could be divided at will, the busiest broker would be at {at}"
        return proposal(goal, room, [], {"target_ratio": target, "usage_ratio": room.highest_ratio()}, why_nothing=why)
    found = _found(room, target)
    highest, by_moves = room.highest_ratio(), found.by_moves.after.highest_ratio()
    figures: dict[str, Figure] = {"target_ratio": target, "usage_ratio": highest, "usage_ratio_by_moves": by_moves}
    if not found.helps:
        to = "" if goal.target_ratio is None else f" --to {goal.target_ratio:.0%}"
        if not (room.usage_at_first[room.fit] > target).any():
            why = f"every broker is within {target:.1%}"
        elif found.by_moves.reached:
            why = f"moves alone bring every broker within {target:.1%}: use `balance{to}`"
        else:
            why = _why_no_split(room, target, by_moves)
        return proposal(goal, room, [], {**figures, "splits": 0}, _refusals(found.refused), why)
    figures |= {
        "usage_ratio_after": found.choice.after.highest_ratio(),
        "usage_ratio_after_at_most": found.choice.after.most_ratio(),
    }
    return _proposal(goal, room, found, target, figures)


def _found(room: Room, target: float) -> _Found:
    """Cuts until moves bring every broker within the target, or no cut is left; the fewest that leave least above it.

    Where no bundle of a broker above the target can be cut, but one would fit elsewhere, the largest that moved is cut:
    it may take the room.
    """
    now = _Divided(room, np.arange(len(room.state.bundles), dtype=np.int32))
    choice = by_moves = _balanced(now.room, target)
    best = now, choice
    refused: dict[str, str] = {}
    for_room = 0
    for _ in range(_MOST_ROUNDS):
        if choice.reached:
            break
        left = _left_above(choice.after)
        cuts = _cuts(now, left, room.state, refused)
        if not cuts and any(_lacks_room(choice.after, row, target) for bundles in left for row in bundles):
            for_room += 1
            if for_room > _MOST_FOR_ROOM:
                break
            cuts = _cuts(now, [_moved(now.room, choice.after)], room.state, {})
        if not cuts:
            break
        division = divided(now.room.state, cuts)
        now = _Divided(now.room.divided(division), now.origin[division.parent])
        choice = _balanced(now.room, target)
        if _rank(now, choice, target) <= _rank(*best, target):
            best = now, choice
    return _Found(by_moves, *best, refused)


def _left_above(after: Room) -> list[list[int]]:
    """The bundles (rows) that may move of each broker still above its ceiling after the moves, the largest first."""
    usage = after.usage_of(np.arange(len(after.fit)))
    return [movable(after, [broker]) for broker in np.flatnonzero(after.fit & (usage > after.ceiling)).tolist()]


def _lacks_room(room: Room, bundle: int, target: float) -> bool:
    """Whether a bundle (a row) that stays could move if a broker that it may go to had all of its room left."""
    return room.share_at_most(bundle) <= target and len(room.allowed(bundle)) > 0


def _moved(before: Room, after: Room) -> list[int]:
    """The bundles (rows) that moved, the largest first."""
    return sorted(np.flatnonzero(after.owner != before.owner).tolist(), key=after.share, reverse=True)


def _rank(now: _Divided, choice: Choice, target: float) -> tuple[bool, float, float, int]:
    """Whether a choice misses the target; the likely usages (ratios) above that, added up; the highest; the cuts."""
    room = choice.after
    excess = float(np.maximum(room.usage_of(np.flatnonzero(room.fit)) - target, 0.0).sum())
    return not choice.reached, round(excess, _DIGITS), round(room.highest_ratio(), _DIGITS), _boundaries(now, room)


def _why_no_split(room: Room, target: float, by_moves: float) -> str:
    """Why no split helps within a target that moves don't reach either; the least target (%) that splits reach."""
    least, most = floor(100 * target), min(ceil(round(100 * by_moves, 3)) - 1, floor(100 * float(room.ceiling.max())))
    if least >= most or not _reaches(room, most / 100):
        return f"no split gets the busiest broker below the {by_moves:.1%} that moves reach alone"
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if _reaches(room, middle / 100) else (middle, most)
    return f"no split lowers the busiest broker with all others within {target:.1%}: use `split --to {most}%`"


def _reaches(room: Room, target: float) -> bool:
    found = _found(room, target)
    return found.choice.reached and found.helps


def _boundaries(now: _Divided, after: Room) -> int:
    """The boundaries between neighbouring parts of a bundle that end on different brokers: what has to be cut."""
    return int(np.count_nonzero((np.diff(now.origin) == 0) & (np.diff(after.owner) != 0)))


def _balanced(room: Room, target: float) -> Choice:
    """The fewest moves to the target, of all bundles that may move from brokers above it."""
    return fewest_within(room, movable_above(room, target), target)


def _refusals(refused: Mapping[str, str]) -> list[str]:
    """The bundles that can't be cut, and why: the first few."""
    sentences = [f"{bundle} can't be split: {why}." for bundle, why in islice(refused.items(), _MOST_NAMED)]
    if (more := len(refused) - _MOST_NAMED) > 0:
        sentences.append(f"{count(more, 'more bundle')} of busy brokers can't be split either.")
    return sentences


def _cuts(
    now: _Divided, groups: Sequence[Sequence[int]], captured: ClusterState, refused: dict[str, str]
) -> list[Split]:
    """Of each group of bundles (rows), the first one that can be cut, in two.

    What can't be cut goes into `refused`, bundle -> why; what may never be a bundle is a part of a `captured` one.
    """
    state, settings = now.room.state, now.room.settings
    counts = bundle_counts(state, settings)
    pieces = np.bincount(now.origin)
    cuts = []
    for bundles in groups:
        for bundle in bundles[:_MOST_TRIED]:
            is_whole = pieces[now.origin[bundle]] == 1
            cut = _cut(state, settings, bundle, counts, is_whole)
            if isinstance(cut, str):
                part = "" if is_whole else f", a part of {captured.bundle_name(int(now.origin[bundle]))},"
                refused.setdefault(f"{state.bundle_name(bundle)}{part}", cut)
                continue
            counts[state.bundles.namespace[bundle]] += 1
            cuts.append(Split(bundle, SPECIFIED_POSITIONS, (cut,), "", near_tie=False))
            break
    return cuts


def _cut(
    state: ClusterState, settings: LoadBalancerSettings, bundle: int, counts: Integers, is_whole: bool
) -> int | str:
    """Where to cut a bundle in two, or why not."""
    most = settings.load_balancer_namespace_maximum_bundles
    namespace = int(state.bundles.namespace[bundle])
    topics = bundle_topics(state, bundle)
    if topics is None:
        return "the topic names of its namespace are not completely known"
    if not 0 <= counts[namespace] < most:
        number = count(int(counts[namespace]), "bundle")
        return f"{state.namespaces.names[namespace]} has {number}, and its maximum is {most}"
    if state.load_manager == "extensible" and not is_whole:
        return "the Extensible manager cuts a bundle in two; take a new snapshot to cut its children"
    cut = even_cut(topics)
    if isinstance(cut, NoCut):
        if (unknown := int(state.bundles.topics[bundle] - topics.loaded.sum())) > 0:
            return f"the load of {count(unknown, 'topic')} in it isn't known"
        if cut.loaded_topics < LEAST_TOPICS:
            return f"it has {count(cut.loaded_topics, 'topic')} with load, and each part needs one"
        return f"{cut.hottest_share:.0%} of its load is one topic's, which would be as hot as before"
    return why_never_split(state, settings, bundle) or awaited_split(state, settings, bundle) or cut


def _proposal(goal: Goal, room: Room, found: _Found, target: float, figures: dict[str, Figure]) -> Proposal:
    """The choice in rows of the snapshot: children that stay together are not cut apart."""
    now, choice = found.now, found.choice
    after, state = choice.after, now.room.state
    pieces = np.bincount(now.origin, minlength=len(room.state.bundles))
    splits = []
    answers = [answer for answer in choice.answers.values() if pieces[now.origin[answer.bundle]] == 1]
    for bundle in np.flatnonzero(pieces > 1).tolist():
        rows = np.flatnonzero(now.origin == bundle)
        groups = np.split(rows, np.flatnonzero(np.diff(after.owner[rows])) + 1)
        owners = tuple(int(after.owner[group[0]]) for group in groups)
        if len(groups) > 1:
            boundaries = tuple(int(state.bundles.lower[group[0]]) for group in groups[1:])
            reason = _reason(now.room, groups, owners, target)
            splits.append(Split(bundle, SPECIFIED_POSITIONS, boundaries, reason, near_tie=False, destinations=owners))
        elif owners[0] != room.owner[bundle]:
            place = Place(owners[0], float(after.most_of([owners[0]])[0]))
            answers.append(Answer(int(rows[0]), BundleOutcome.MOVES, place, target))
    added = Counter(int(room.state.bundles.namespace[split.bundle]) for split in splits for _ in split.boundaries)
    counts = bundle_counts(room.state, room.settings)
    most = room.settings.load_balancer_namespace_maximum_bundles
    left = [
        f"{room.state.namespaces.names[namespace]} then has {counts[namespace] + number} of at most {most} bundles"
        for namespace, number in sorted(added.items())
    ]
    caveats = [f"A split can't be undone; {some_of(left)}."]
    if not choice.reached:
        caveats.append(f"The busiest broker only gets to {after.highest_ratio():.1%}, not to {target:.1%}.")
        caveats += _refusals(found.refused)
    moved = sum(to != room.owner[split.bundle] for split in splits for to in split.destinations)
    cut = [split.bundle for split in splits]
    moves, of_a_cut = after.owner != state.bundles.owner, np.isin(now.origin, cut)
    whole, going = (np.flatnonzero(moves & of).tolist() for of in (~of_a_cut, of_a_cut))
    figures |= {"splits": len(splits), "children_moved": moved}
    figures["clients_of_children"] = sum(clients(now.room, row) for row in going)
    in_rows = proposal(goal, after, answers, figures, caveats)
    return replace(
        in_rows,
        figures={**in_rows.figures, "clients": sum(clients(now.room, row) for row in whole)},
        moves=tuple(replace(move, bundle=int(now.origin[move.bundle])) for move in in_rows.moves),
        splits=tuple(splits),
        answers=tuple(
            replace(one, outcomes=replace(one.outcomes, index=now.origin[one.outcomes.index]))
            if one.outcomes.subject == "bundle"
            else one
            for one in in_rows.answers
        ),
        why_nothing=None,
    )


def _reason(cut: Room, groups: Sequence[Rows], owners: Sequence[int], target: float) -> str:
    """Why a bundle is split, and the load of each child where it goes."""
    state, parts = cut.state, []
    for group, owner in zip(groups, owners, strict=True):
        share = float(cut.ratios(cut.moved[group].sum(axis=0)[None, :], [owner])[0])
        topics = int(state.bundles.topics[group].sum())
        take = "takes" if topics == 1 else "take"
        parts.append(f"{count(topics, 'topic')} {take} {share:.1%} of {state.brokers.ids[owner]}")
    return f"no moves bring every broker within {target:.1%} while it is whole; of its parts, {'; '.join(parts)}"
