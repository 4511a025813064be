"""Why a bundle, a broker, a namespace or the whole cluster is balanced or left alone, and what would change that.

The answers of all strategies about it, in the order in which Pulsar asks: the shedder about the broker and the bundle,
the load manager about the chosen bundle, filters and placement strategy about each broker that could take it, and the
split decider. Each comes with both sides of the inequality that decided it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, LoadManagerKind
from pulsar_advisor.model.configuration.class_names import LOAD_MANAGERS
from pulsar_advisor.model.configuration.defaults import is_known
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.model.strategy.outcomes import Outcomes, vocabulary
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.placement import filters
from pulsar_advisor.planning.advice.capacity import only_more_brokers
from pulsar_advisor.planning.plans.deciding import deciding, require_inputs
from pulsar_advisor.planning.plans.propose import propose, propose_splits
from pulsar_advisor.planning.proposals.proposal import Answers, Move, Proposal, Role
from pulsar_advisor.planning.questions.smallest_change import Change, smallest_changes
from pulsar_advisor.planning.questions.subject import Kind, Subject
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.requests.what_if import Resolve, keys_that_count
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.forecast import finite

SHOWN: Final = 20
"""Answers kept of one strategy to one question: what it chose most clearly, then what came nearest to it."""
BUNDLES_PLACED: Final = 3
"""Bundles for which the candidates are shown, if the question is about more than one bundle."""

_OF_THE_LEADER: Final = ("loadBalancerSheddingGracePeriodMinutes", "loadBalancerSheddingExcludedNamespaces")
"""Keys by which the load manager leaves bundles alone, whatever the shedder."""
_OF_A_SECOND_CHOICE: Final = "loadBalancerBrokerOverloadedThresholdPercentage"
"""Whether the load manager chooses again, whatever the placement strategy."""


@dataclass(frozen=True)
class Answer:
    """What a strategy says about one broker or bundle. Figures that are no numbers are null."""

    object: str
    code: str
    chosen: bool
    left: float | None
    relation: str
    """Empty where nothing was compared."""
    right: float | None
    sentence: str
    last_digit: bool
    """Whether a tie or the last digit decided."""


@dataclass(frozen=True)
class Link:
    """One strategy's answers to one question; one link of the chain."""

    strategy: str
    role: Role
    subject: Literal["broker", "bundle"]
    about: str
    """For placement: the bundle for which the brokers are candidates."""
    answers: tuple[Answer, ...]
    number: int
    """How many there are; `answers` are the first of them."""


@dataclass(frozen=True)
class Flip:
    """The smallest change of one setting with which something else happens, and what happens then."""

    change: Change
    sentence: str


@dataclass(frozen=True)
class Explanation:
    """Why something is balanced or left alone."""

    shedder: str
    placement: str
    kind: Kind
    name: str
    acts: bool
    """Whether anything of the subject is unloaded."""
    sentence: str
    capacity: str | None
    """Why only more brokers can help, whatever the balancer does; None where moves may."""
    acts_in_cycle: int | None
    chain: tuple[Link, ...]
    flips: tuple[Flip, ...]
    """The smallest change first; at most one for each setting."""
    tried: tuple[str, ...]
    """Pulsar's keys that were tried, sorted."""


def explain(
    request: Request, kind: Kind, name: str, state: ClusterState, resolve: Resolve, earlier: Sequence[ClusterState] = ()
) -> Explanation:
    """Explain what one shedder with one placement strategy does with a subject, and find what would change it.

    `state` and `earlier` (those before, oldest first) are as the brokers reported them; `request` may hold a what-if.
    Raises `AdvisorError` if the combination can't be judged, `UsageError` if there is no such subject.
    """
    own, subject = Situation.of_fit(state, resolve({}), earlier), Subject.of(state, kind, name)
    require_inputs(request.shedder, request.placement, state)

    def under(what_if: Mapping[str, str]) -> Situation:
        return own.under(resolve(what_if), what_if)

    def proposed(what_if: Mapping[str, str]) -> Proposal:
        ((_, proposal),) = propose(request, under(what_if))
        if isinstance(proposal, AdvisorError):
            raise proposal
        return proposal

    proposal, asked = proposed(request.what_if), under(request.what_if)
    splits, settings = propose_splits(request, asked), asked.settings.values
    links = tuple(_links(state, subject, proposal.moves, (*proposal.answers, *(splits.answers if splits else ()))))
    as_is = _fate(subject, proposal.moves)

    def differs(key: str, text: str) -> bool:
        return _fate(subject, proposed({**request.what_if, key: text}).moves) != as_is

    keys = _keys(request, own.settings.values, state.load_manager, any(link.about for link in links))
    keys -= request.what_if.keys()
    named = {state.namespace_of(row) for row in subject.bundles}
    changes = smallest_changes(
        settings, sorted(keys), sorted(named) if kind in ("namespace", "bundle") else (), differs
    )
    flips = tuple(
        Flip(change, _sentence(state, subject, proposed({**request.what_if, change.key: change.after})))
        for change in changes
    )
    return Explanation(
        shedder=proposal.shedder,
        placement=proposal.placement,
        kind=kind,
        name=subject.name,
        acts=bool(_moved(subject, proposal.moves)),
        sentence=_sentence(state, subject, proposal),
        capacity=only_more_brokers(usage_ratios(state.brokers, settings)[state.brokers.available], settings),
        acts_in_cycle=proposal.acts_in_cycle,
        chain=links,
        flips=flips,
        tried=tuple(sorted(keys)),
    )


def _keys(
    request: Request, settings: LoadBalancerSettings, load_manager: LoadManagerKind, placed: bool
) -> frozenset[str]:
    """Pulsar's keys that its release has and that may matter: of placement only if it was asked, of filters too, but
    for those that TransferShedder applies itself."""
    shedder, placement = deciding(request.shedder, request.placement)
    of_placement = (*placement.setting_keys, _OF_A_SECOND_CHOICE) if placed else ()
    of_filters = filters.SETTING_KEYS if placed or load_manager == "extensible" else ()
    read = {*shedder.setting_keys, *_OF_THE_LEADER, *of_placement, *of_filters}
    return frozenset(key for key in keys_that_count() & read if is_known(key, settings.behaviour))


def _moved(subject: Subject, moves: Sequence[Move]) -> tuple[Move, ...]:
    return tuple(move for move in moves if move.bundle in subject.bundles)


def _got(subject: Subject, moves: Sequence[Move]) -> int:
    """How many bundles a broker gets; 0 for another subject."""
    return sum(move.destination in subject.brokers for move in moves) if subject.kind == "broker" else 0


def _fate(subject: Subject, moves: Sequence[Move]) -> object:
    """What a change must alter: for a bundle, whether it is unloaded and where to; else whether anything is, or gets
    to the broker."""
    moved = _moved(subject, moves)
    if subject.kind == "bundle":
        return tuple((move.bundle, move.destination) for move in moved)
    return bool(moved), bool(_got(subject, moves))


def _links(state: ClusterState, subject: Subject, moves: Sequence[Move], given: Sequence[Answers]) -> list[Link]:
    """The chain, in the order in which Pulsar asks; questions that were not put are left out."""
    links = []
    placed: dict[str, None] = {}
    moved = [state.bundle_name(move.bundle) for move in _moved(subject, moves)]
    for answers in given:
        wanted: Collection[int] = subject.brokers if answers.outcomes.subject == "broker" else subject.bundles
        if answers.role == "placement":
            own = _is_about(subject, answers.about, moved)
            if not own and subject.kind != "broker":
                continue
            placed[answers.about] = None
            if len(placed) > BUNDLES_PLACED and subject.kind != "bundle":
                continue
            wanted = range(len(state.brokers)) if own else subject.brokers
        link = _link(state, answers, wanted)
        if link.number:
            links.append(link)
    return links


def _is_about(subject: Subject, bundle: str, moved: Collection[str]) -> bool:
    """Whether a bundle for which brokers were candidates belongs to the subject."""
    if subject.kind in ("bundle", "cluster"):
        return subject.kind == "cluster" or bundle == subject.name
    namespace = bundle.rpartition("/")[0]
    return namespace == subject.name if subject.kind == "namespace" else bundle in moved


def _link(state: ClusterState, answers: Answers, wanted: Collection[int]) -> Link:
    outcomes = answers.outcomes
    rows = np.flatnonzero(np.isin(outcomes.index, np.fromiter(wanted, dtype=np.int64, count=len(wanted))))
    last_digit = outcomes.near_tie()
    of_filters = outcomes.vocabulary == vocabulary(filters.FilterOutcome)
    return Link(
        strategy=LOAD_MANAGERS[state.load_manager] if of_filters else answers.strategy,
        role="load manager" if of_filters else answers.role,
        subject=outcomes.subject,
        about=answers.about,
        answers=tuple(
            _answer(outcomes, row, state.name_of(outcomes.subject, int(outcomes.index[row])), bool(last_digit[row]))
            for row in outcomes.nearest_first(rows)[:SHOWN].tolist()
        ),
        number=len(rows),
    )


def _answer(outcomes: Outcomes, row: int, name: str, last_digit: bool) -> Answer:
    outcome = outcomes.vocabulary[outcomes.code[row]]
    return Answer(
        object=name,
        code=outcome.code,
        chosen=outcome.chosen,
        left=finite(outcomes.left[row]),
        relation=outcome.relation,
        right=finite(outcomes.right[row]),
        sentence=outcomes.explain(row),
        last_digit=last_digit,
    )


def _sentence(state: ClusterState, subject: Subject, proposal: Proposal) -> str:
    """What happens with the subject, and the answer that decided it."""
    moved = _moved(subject, proposal.moves)
    if subject.kind == "bundle":
        return _about_bundle(state, subject, proposal, moved)
    if moved:
        sources = some_of({state.brokers.ids[move.source] for move in moved})
        of = {"namespace": f" of {subject.name}"}.get(subject.kind, "")
        return f"{proposal.shedder} unloads {count(len(moved), 'bundle')}{of} from {sources}."
    if subject.kind == "cluster":
        return f"Nothing is unloaded. {proposal.why_nothing}"
    reason = _reason(state, subject, proposal)
    if subject.kind == "namespace":
        return f"No bundle of {subject.name} is unloaded: {reason}."
    gets, why_nothing = _got(subject, proposal.moves), proposal.why_nothing or ""
    also = f" It gets {count(gets, 'bundle')}." if gets else ""
    if not proposal.moves and reason not in why_nothing:
        also = f" It gets nothing either. {why_nothing}".rstrip()
    return f"{subject.name} gives up nothing: {reason}.{also}"


def _about_bundle(state: ClusterState, subject: Subject, proposal: Proposal, moved: Sequence[Move]) -> str:
    (bundle,) = subject.bundles
    owner = int(state.bundles.owner[bundle])
    if moved:
        (move,) = moved
        to = "a broker of Pulsar's choice" if move.destination == NO_ROW else state.brokers.ids[move.destination]
        return f"{subject.name} is unloaded from {state.brokers.ids[move.source]} and goes to {to}."
    if owner == NO_ROW:
        return f"{subject.name} has no owner: there is nothing to unload."
    return f"{subject.name} stays on {state.brokers.ids[owner]}: {_reason(state, subject, proposal)}."


def _reason(state: ClusterState, subject: Subject, proposal: Proposal) -> str:
    """The last refusal: the load manager's about a bundle, else the shedder's about a bundle, else about a broker."""
    for role, kind in (("load manager", "bundle"), ("shedder", "bundle"), ("shedder", "broker")):
        wanted = subject.bundles if kind == "bundle" else subject.brokers
        of_role = (one for one in proposal.answers if one.role == role and one.outcomes.subject == kind)
        for answers in of_role:
            outcomes = answers.outcomes
            rows = np.flatnonzero(np.isin(outcomes.index, list(wanted)) & ~outcomes.chosen())
            if len(rows):
                row = int(outcomes.nearest_first(rows)[0])
                name = state.name_of(outcomes.subject, int(outcomes.index[row]))
                return outcomes.explain(row) if name == subject.name else f"{name}: {outcomes.explain(row)}"
    return f"{proposal.shedder} does not look at it: {_why_unasked(state, subject)}"


def _why_unasked(state: ClusterState, subject: Subject) -> str:
    """Why a shedder has no answer about a subject though it may give up other bundles of the same broker."""
    bundles, brokers = np.array(sorted(subject.bundles), dtype=np.intp), state.brokers
    owned = bundles[state.bundles.owner[bundles] != NO_ROW]
    if subject.kind == "namespace" and not len(owned):
        return "no broker owns any of its bundles, so nothing would move"
    fit = state.bundles.usable[owned] & brokers.fit[state.bundles.owner[owned]]
    if subject.kind != "broker" and fit.all():
        if not state.bundles.topics[owned].any():
            return "none of its topics is loaded, so nothing would move"
        if state.load_manager == "extensible":
            if subject.kind == "bundle":
                return "it is not among the top bundles that its broker reports"
            return "none of its bundles is among the top ones that brokers report"
    return f"{LOAD_MANAGERS[state.load_manager]} has no fit figures about it"
