"""Asks the advisor about a scenario, one verb after the other, as far as no Spark and no disk are needed.

Each answer is put together as the stage of that verb does it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.lint.judge import FindingWithEffect, LintFinding, judge, proposals
from pulsar_advisor.lint.rule import Case
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan, PlanInputs
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.advice.compare import Score, score
from pulsar_advisor.planning.advice.goal_sentence import goal_sentence
from pulsar_advisor.planning.advice.options import Option
from pulsar_advisor.planning.kinds.goal import resolved_goal
from pulsar_advisor.planning.kinds.goal_outcome import GoalOutcome, goal_outcome
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.proposals.configured import Configured, configured_of
from pulsar_advisor.planning.proposals.fitness import fit_part
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.questions.explain import Explanation, explain
from pulsar_advisor.planning.questions.restart_order import RestartOrder, restart_order
from pulsar_advisor.planning.questions.scale import Scale, scale
from pulsar_advisor.planning.questions.subject import Kind
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.recommendation.left_alone import LeftAlone
from pulsar_advisor.recommendation.recommendation import recommendation
from pulsar_advisor.recommendation.shedder_answers import ShedderAnswers
from pulsar_advisor.simulation.foresight import left_alone
from pulsar_advisor.simulation.scores import Ending, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import Simulation
from pulsar_advisor.simulation.trials import Trial, trials
from scenarios.scenario import PORT, Scenario

_INPUTS = PlanInputs(manifest_sha256="0" * 64, validation_sha256="1" * 64)


@dataclass(frozen=True, eq=False)
class GoalAnswer:
    """What `drain`, `relieve` and the like answer: a plan, and its sentence."""

    goal: Goal
    plan: Plan
    headline: str

    @property
    def moves(self) -> dict[str, str]:
        """Bundle -> host of its destination, of the steps that can be carried out; whole bundles only."""
        return {
            step.bundle_name: str(step.destination).removesuffix(PORT)
            for step in self.plan.steps
            if step.executable and step.action == "unload" and step.destination is not None and not step.after
        }

    @property
    def hosts(self) -> tuple[str, ...]:
        """The brokers that it is about."""
        return tuple(broker.removesuffix(PORT) for broker in self.goal.brokers)

    @property
    def splits(self) -> int:
        """Bundles that are cut."""
        return sum(step.action == "split" and step.executable for step in self.plan.steps)

    @property
    def outcome(self) -> GoalOutcome | None:
        """How far the plan gets with the goal: what the exit code tells a script."""
        return goal_outcome(self.plan)


@dataclass(frozen=True, eq=False)
class Recommended:
    """What `recommend` answers: the document, and the plan that it advises."""

    document: Recommendation
    plan: Plan | None

    @property
    def headline(self) -> str:
        """The advice."""
        return self.document.advice.sentence

    @property
    def options(self) -> Sequence[Option]:
        """What could be done, best first."""
        return self.document.options or ()

    @property
    def words(self) -> str:
        """All sentences of an operator's page."""
        findings = (one.sentence for one in self.document.findings)
        return " ".join((self.headline, self.document.coverage.sentence, *findings))


class Asked:
    """The answers about one scenario; each is found when it is first wanted."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.state = scenario.state
        self.fit = fit_part(scenario.state)
        self.earlier = [fit_part(moment) for moment in scenario.history]
        self.values = scenario.values
        self._goals: dict[str, GoalAnswer | AdvisorError] = {}
        self._scales: dict[float, Scale] = {}

    @property
    def own(self) -> Configured:
        """The cluster's own strategies."""
        return configured_of(self.state.load_manager, self.values)

    @property
    def overloaded_ratio(self) -> float:
        """The overload threshold."""
        return self.values.overloaded_ratio

    @cached_property
    def situation(self) -> Situation:
        """What plans and sentences start from."""
        return Situation(self.fit, self.scenario.resolved, self.earlier, self.state)

    @property
    def keeps_destinations(self) -> bool:
        """Whether the brokers go where a plan sends them."""
        return self.state.load_manager != "simple" and self.values.behaviour >= (3, 0, 0)

    def resolve(self, what_if: Mapping[str, str]) -> ResolvedSettings:
        """The settings under a what-if."""
        return resolve_settings(self.scenario.pulsar, self.scenario.runtime, None, what_if)

    def room(self, ceiling_ratio: float | None = None) -> Room:
        """The room that `scale` and `restart-order` see."""
        return Room.of(self.situation, ceiling_ratio)

    def goal(self, text: str) -> GoalAnswer | AdvisorError:
        """The answer to `relieve a --to 60` and the like, or why it is refused."""
        if text not in self._goals:
            try:
                self._goals[text] = self._goal(goal_of(text))
            except AdvisorError as error:
                self._goals[text] = error
        return self._goals[text]

    def _goal(self, asked: Goal) -> GoalAnswer:
        goal = resolved_goal(asked, self.state.brokers.ids, self.overloaded_ratio)
        request = Request(goal=goal, limits=Limits())
        ((_, proposal),) = propose(request, self.situation)
        if isinstance(proposal, AdvisorError):
            raise proposal
        plan = build_plan(self.situation, proposal, request, _INPUTS)
        return GoalAnswer(goal, plan, goal_sentence(plan))

    def scale(self, target_ratio: float) -> Scale:
        """The answer to `scale`."""
        if target_ratio not in self._scales:
            self._scales[target_ratio] = scale(self.room(), target_ratio)
        return self._scales[target_ratio]

    @cached_property
    def restarts(self) -> RestartOrder:
        """The answer to `restart-order`."""
        return restart_order(self.room())

    @cached_property
    def lint(self) -> tuple[LintFinding, ...]:
        """The answer to `lint`, without effects."""
        runtime = dict.fromkeys(self.state.brokers.ids, self.scenario.runtime)
        return judge(Case(self.fit, self.scenario.resolved, runtime))

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The effects that `lint` shows beside its proposals."""
        return trials([one.change for one in self.lint], self.situation, self.resolve)

    @property
    def proposals(self) -> Sequence[FindingWithEffect]:
        """The answer to `lint`: what it proposes once its changes have been tried."""
        return proposals(self.lint, self.trials)

    @cached_property
    def alone(self) -> Simulation | AdvisorError:
        """The cluster under its own strategies, for an hour."""
        try:
            return left_alone(self.situation, 0)
        except AdvisorError as error:
            return error

    @cached_property
    def today(self) -> Ending | AdvisorError:
        """How that ends."""
        alone = self.alone
        return alone if isinstance(alone, AdvisorError) else simulation_score(alone, cycle_scores(alone))

    def explanation(self, kind: Kind, name: str = "") -> Explanation | AdvisorError:
        """The answer to `explain` about the cluster's own strategies."""
        request = Request(shedder=self.own.shedder, placement=self.own.placement, splits=False)
        try:
            return explain(request, kind, name, self.fit, self.resolve, self.earlier)
        except AdvisorError as error:
            return error

    @cached_property
    def recommendation(self) -> Recommended:
        """The answer to `recommend` about all strategies."""
        plans: dict[str, Plan] = {}
        request = Request()
        scores = [row for shedder in request.shedders for row in self._scores(shedder, plans)]
        simulated = LeftAlone(self.situation, self.alone, self.trials)
        document = recommendation(simulated, scores, request, plans.__getitem__, "0" * 64)
        advised = document.advice.plan
        return Recommended(document, None if advised is None else plans[advised])

    def _scores(self, shedder: str, plans: dict[str, Plan]) -> list[Score]:
        request = Request().of(shedder)
        with_splits = shedder == Request().shedders[0]
        answers = ShedderAnswers.of(request, self.situation, with_splits=with_splits)
        scores = []
        for made in answers.plans(_INPUTS, ()):
            if isinstance(made, Plan):
                plans[made.title] = made
                scores.append(score(made, self.fit, file=made.title, digest=digest_of(made)))
            else:
                scores.append(made)
        return scores


def goal_of(text: str) -> Goal:
    """The goal of a command such as `relieve a --to 60`, as the command line reads it."""
    kind, *words = shlex.split(text)
    brokers, options = [], {}
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            options[word] = float(words.pop(0)) / 100
        else:
            brokers.append(word)
    return Goal(kind, tuple(brokers), options.pop("--to", None), options.pop("--ceiling", None))
