"""The fields of the DAGs' forms. Strategy names come from the registries, so a new one appears automatically."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast

from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException

from pulsar_advisor.model.bounds import (
    CANARY_HOLD,
    EXPIRES,
    HISTORY,
    IN_FLIGHT,
    MAX_AGE,
    MAX_MEGABYTES,
    MAX_PER_SOURCE,
    MAX_SPLITS,
    MAX_TOPICS,
    MAX_UNLOADS,
    PAUSE_BETWEEN,
    PER_DESTINATION,
    PER_NAMESPACE,
    PER_SOURCE,
    TOPICS_PER_MINUTE,
    Bounds,
)
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.entry import Strategy
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.kinds.goal import check_goal
from pulsar_advisor.planning.kinds.registry import KINDS, plan_kind
from pulsar_advisor.planning.proposals.configured import CONFIGURED
from pulsar_advisor.planning.requests.request import ALL, Request, what_if
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor_airflow.failures import as_airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

HOUR_S = 3600
_BOTH = {CONFIGURED: "the cluster's own, as its brokers are configured", ALL: "all, and advise the best"}

_VIEWS = {
    "judged": "judged: the validated ones, fresh if any broker was read",
    "fresh": "fresh: as the brokers have them now",
    "published": "published: as the leader sees them in ZooKeeper",
}


def strategy_params(shedder: str, placement: str) -> dict[str, Param]:
    """What to recommend; the arguments are the defaults.

    A form is built before any cluster is queried, so its default is `configured`, which `recommend` resolves.
    """
    return {
        "shedder": _strategy_param(shedder, SHEDDERS, "Shedder"),
        "placement": _strategy_param(placement, PLACEMENTS, "Placement strategy"),
        "splits": Param(True, type="boolean", title="Recommend splits too", section="What to recommend"),
        "unload_children": Param(
            False,
            type="boolean",
            title="Unload the children of a split",
            description="If the placement strategy puts them on another broker",
            section="What to recommend",
        ),
        "view": Param(
            "judged",
            type="string",
            enum=list(_VIEWS),
            values_display=_VIEWS,
            title="Figures",
            section="What to recommend",
        ),
        "what_if": Param(
            [],
            type=["null", "array"],
            items={"type": "string", "pattern": r"^[A-Za-z]+=.*$"},
            title="What-if settings",
            description="One per line: loadBalancerBrokerThresholdShedderPercentage=5",
            section="What to recommend",
        ),
        "history": optional_number_param(
            HISTORY,
            "Earlier snapshots to learn from",
            "What to recommend",
            "Empty: those within the grace period of unloads",
        ),
    }


def _strategy_param(default: str, strategies: Iterable[Strategy], title: str) -> Param:
    display = _BOTH | {strategy.name: f"{strategy.name}: {strategy.summary}" for strategy in strategies}
    return Param(
        default, type="string", enum=list(display), values_display=display, title=title, section="What to recommend"
    )


def _percent_param(title: str, description: str, section: str = "What to recommend") -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=100,
        title=title,
        description=description,
        section=section,
    )


def _names_param(title: str, description: str, section: str) -> Param:
    items = {"type": "string", "pattern": r"^[^\s,]+$"}
    return Param([], type=["null", "array"], items=items, title=title, description=description, section=section)


# No roll: it waits for restarts between its turns, for which this form's DAG has no task.
_KINDS = tuple(kind for kind in KINDS if not kind.in_order)


def _takers(option: str) -> str:
    """`drain, relieve and conform`: the plan kinds that take an option."""
    *others, last = (kind.name for kind in _KINDS if option in kind.options)
    return f"{', '.join(others)} and {last}"


GOAL = {
    # Airflow's form treats an empty text as missing, so the choice of no goal is null.
    "goal": Param(
        None,
        type=["null", "string"],
        enum=[None, *(kind.name for kind in _KINDS)],
        values_display={"null": "what the strategies above would do"}
        | {k.name: f"{k.name}: {k.summary}" for k in _KINDS},
        title="Goal",
        section="What to recommend",
    ),
    "goal_brokers": _names_param(
        "Brokers of the goal",
        "One per line: broker id, or the beginning of its host name up to a dot",
        "What to recommend",
    ),
    "goal_bundles": _names_param(
        "Bundles of the goal",
        "For move; one per line: tenant/namespace/0x00000000_0x40000000, or a topic",
        "What to recommend",
    ),
    "goal_onto": _names_param(
        "Only onto these brokers",
        f"For {_takers('onto')}; one per line. Empty (not for move): onto any",
        "What to recommend",
    ),
    "goal_to_percent": _percent_param("Usage to reach (%)", f"For {_takers('to')}. Empty: by the mean of all brokers"),
    "goal_ceiling_percent": _percent_param(
        "Maximum usage of destinations (%)", f"For {_takers('ceiling')}. Empty: the overload threshold"
    ),
}


def number_param(default: int, bounds: Bounds, title: str, section: str, *, unit_s: int = 1) -> Param:
    """A number field with bounds; for a duration, bounded in seconds, in units of `unit_s` with decimals."""
    return Param(
        default,
        type="number" if bounds.is_duration else "integer",
        minimum=bounds.least / unit_s,
        maximum=bounds.greatest / unit_s,
        title=title,
        section=section,
    )


def optional_number_param(
    bounds: Bounds, title: str, section: str = "Limits", description: str = "Empty: no limit"
) -> Param:
    """A field for a whole number that may be left empty."""
    limits = {"minimum": bounds.least, "maximum": bounds.greatest}
    return Param(None, type=["null", "integer"], **limits, title=title, description=description, section=section)


LIMITS = {
    "max_unloads": number_param(10, MAX_UNLOADS, "Maximum number of unloads", "Limits"),
    "max_splits": number_param(2, MAX_SPLITS, "Maximum number of splits", "Limits"),
    "max_per_source": optional_number_param(MAX_PER_SOURCE, "Maximum number of unloads from one broker"),
    "max_topics": optional_number_param(MAX_TOPICS, "Maximum number of topics that the unloads disturb"),
    "max_megabytes_per_s": optional_number_param(MAX_MEGABYTES, "Maximum traffic of the unloaded bundles, in MB/s"),
    "exclude_broker": _names_param("Brokers that no step touches", "One per line", "Limits"),
    "exclude_namespace": _names_param("Namespaces or tenants that no step touches", "One per line", "Limits"),
    "first_broker": _names_param("Brokers whose unloads come first", "If limits leave some out", "Limits"),
    "first_namespace": _names_param("Namespaces or tenants that come first", "The same for their bundles", "Limits"),
}

RUN = {
    "max_age_h": number_param(6, MAX_AGE, "Maximum age of the snapshot (hours)", "Limits", unit_s=HOUR_S),
    "pause_s": number_param(10, PAUSE_BETWEEN, "Pause between two calls, or waves of calls (seconds)", "Limits"),
    "canary_hold_s": number_param(60, CANARY_HOLD, "Hold time of the first step (seconds)", "Limits"),
    "in_flight": number_param(1, IN_FLIGHT, "Steps in flight", "Limits"),
    "per_source": number_param(2, PER_SOURCE, "Steps in flight from one broker", "Limits"),
    "per_destination": number_param(2, PER_DESTINATION, "Steps in flight to one broker", "Limits"),
    "per_namespace": number_param(2, PER_NAMESPACE, "Steps in flight of one namespace", "Limits"),
    "topics_per_minute": optional_number_param(TOPICS_PER_MINUTE, "Topics unloaded per minute"),
    "until": Param(
        None,
        type=["null", "string"],
        pattern=r"^([01]\d|2[0-3]):[0-5]\d$",
        title="Send nothing after (HH:MM)",
        description="In UTC, the first one after this DAG run starts. Clear apply to continue until the next one",
        section="Limits",
    ),
    "guard": Param(
        False,
        type="boolean",
        title="Switch the cluster's own balancer off during the run",
        description="loadBalancerSheddingEnabled and loadBalancerAutoBundleSplitEnabled; restored afterwards",
        section="Limits",
    ),
    "answer_within_h": Param(
        4, type="number", exclusiveMinimum=0, maximum=72, title="Wait for an answer (hours)", section="Approval"
    ),
    "offer_undo_h": Param(
        1,
        type="number",
        minimum=0,
        maximum=72,
        title="If it goes wrong, offer an undo for (hours)",
        description="0: no offer",
        section="Approval",
    ),
    "expires_h": number_param(4, EXPIRES, "Approval valid for (hours)", "Approval", unit_s=HOUR_S),
    "approvers": Param(
        [],
        type=["null", "array"],
        items={"type": "string", "pattern": r"^\S(.*\S)?$"},  # no user's name begins or ends with a space
        title="Only these may answer",
        description="User names (with FAB, user ids), one per line. Empty: anyone who may write to this DAG; never "
        "the proposer",
        section="Approval",
    ),
}
"""Fields about how a plan is carried out, and who is responsible."""

LIMITS_OF_A_RUN = (
    "pause_s",
    "canary_hold_s",
    "in_flight",
    "per_source",
    "per_destination",
    "per_namespace",
    "topics_per_minute",
    "guard",
)
"""Fields of the form that are limits of `ApplyThrottle` of the same name."""

THROTTLE = {
    "max_age_s": "{{ (params.max_age_h * 3600) | int }}",
    **{limit: f"{{{{ params.{limit} }}}}" for limit in LIMITS_OF_A_RUN},
}
"""The limits that the form asks for, in a DAG with native templates."""

DIGEST = "sha256:{{ (params.digest or '') | replace('sha256:', '') }}"
"""The digest in the form; without the prefix, a native template would turn one such as 123e45 into a number."""

_DIGEST = {
    "digest": Param(
        None,
        type=["null", "string"],
        pattern="^(sha256:)?[0-9a-f]{6,64}$",
        title="Digest of a plan",
        description="The first digits, as in a report, are enough. Empty: recommend on a fresh snapshot",
    ),
}

_TO_PLAN = {**strategy_params(CONFIGURED, CONFIGURED), **GOAL, **LIMITS}

REBALANCE = {
    **_DIGEST,
    "undo": Param(
        False,
        type="boolean",
        title="Undo the plan with this digest",
        description="Moves back what its run moved, if the ledger confirms it; needs a new approval",
    ),
    **_TO_PLAN,
    **RUN,
}
"""The form of `pulsar_rebalance`."""

_TO_ROLL = {
    "brokers": _names_param("Brokers to restart, in this order", "One per line. Empty: all, in the best order", "Roll"),
    "spare": _names_param("Spare brokers", "One per line: they take bundles first, and are not restarted", "Roll"),
    "ceiling_percent": _percent_param("Maximum usage of brokers (%)", "Empty: the overload threshold", section="Roll"),
}

ROLL = {
    **_DIGEST,
    **_TO_ROLL,
    **{name: RUN[name] for name in ("max_age_h", *LIMITS_OF_A_RUN, "answer_within_h", "approvers") if name != "guard"},
    "expires_h": number_param(24, EXPIRES, "Approval valid for (hours)", "Approval", unit_s=HOUR_S),
}
"""The form of `pulsar_rolling_restart`. A roll always has a guard."""


def words(option: str, value: bool | float | str | list[str] | None, *, in_one: bool = False) -> list[str]:
    """An option of a job with the value of a field: nothing for an empty one, once for each item of a list, unless they
    go into one, separated by commas.
    """
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    if isinstance(value, list):
        return [f"--{option}={one}" for one in ([",".join(value)] if in_one and value else value)]
    # A call over the REST API may say 10.0.
    return [] if value is None else [f"--{option}={int(value) if isinstance(value, float) else value}"]


FORM_MACROS = {"words": words}
"""Macros for templates that use the form."""


def _arguments(fields: Iterable[str], *, in_one: bool = False) -> tuple[str, ...]:
    """Fields as arguments of their job, in a DAG with native templates and `FORM_MACROS`."""
    return tuple(f"{{{{ words('{_option(field)}', params.{field}, in_one={in_one}) }}}}" for field in fields)


def _option(field: str) -> str:
    """`goal_to_percent` is `--to`."""
    return "set" if field == "what_if" else field.removeprefix("goal_").removesuffix("_percent").replace("_", "-")


STRATEGY_ARGUMENTS: Final = _arguments(strategy_params(CONFIGURED, CONFIGURED))
LIMIT_ARGUMENTS: Final = _arguments(LIMITS)
GOAL_ARGUMENTS: Final = _arguments(GOAL, in_one=True)
ROLL_ARGUMENTS: Final = _arguments(_TO_ROLL, in_one=True)

_FIELDS: Final = {**REBALANCE, **ROLL}
_OF_STRATEGIES: Final = ("shedder", "placement", "splits", "unload_children", "max_splits")
_DEFAULTS: Final = {name: field.value for name, field in _FIELDS.items()}
"""A copy, because Airflow writes the submitted values into the fields."""


def filled_in(form: Mapping[str, Param], context: Context) -> Mapping[str, object]:
    """The values of the fields of a DAG run's form. Raises `AirflowFailException` if one would be ignored."""
    params: Mapping[str, object] = context["params"]
    given = context["dag_run"].conf or {}
    ours = {name: value for name, value in given.items() if not name.startswith("airflow/")}
    if unknown := sorted(ours.keys() - form.keys()):
        raise AirflowFailException(plain(f"the form has no field {some_of(unknown)}: its fields are {', '.join(form)}"))
    if any(params[name] != value for name, value in ours.items()):
        raise AirflowFailException("this Airflow ignores the form: [core] dag_run_conf_overrides_params must be true")
    require_no_contradiction(params)
    return params


def require_no_contradiction(params: Mapping[str, object]) -> None:
    """Raise `AirflowFailException` if `pulsar_rebalance` or `pulsar_rolling_restart` would ignore a filled-in field."""
    if params["digest"]:
        _require_untouched(params, {**_TO_PLAN, **_TO_ROLL}, "the plan with this digest is already made")
    elif params.get("undo"):
        raise AirflowFailException("Undo needs the digest of the plan to undo")
    elif "goal" in params and not params["goal"]:
        _require_untouched(params, GOAL, "no goal is chosen")
    elif kind := params.get("goal"):
        _require_untouched(params, _OF_STRATEGIES, f"{kind} uses no strategy")
        takes = plan_kind(str(kind)).options
        # The other fields are checked with the goal.
        ignored = [field for field in ("goal_onto", "goal_ceiling_percent") if _option(field) not in takes]
        _require_untouched(params, ignored, f"{kind} takes none, as in a shell")
        brokers, onto, bundles = (
            tuple(cast("list[str] | None", params[field]) or ())
            for field in ("goal_brokers", "goal_onto", "goal_bundles")
        )
        percent = cast("float | None", params["goal_to_percent"])
        with as_airflow_errors():  # rather than after a capture
            check_goal(Goal(str(kind), brokers, percent and percent / 100, None, onto, bundles))
    if not params["digest"] and params.get("what_if"):
        with as_airflow_errors():
            Request(what_if=what_if(cast("list[str]", params["what_if"])))


def _require_untouched(params: Mapping[str, object], fields: Iterable[str], because: str) -> None:
    # Airflow's form treats an empty list as missing.
    filled = [name for name in fields if name in params and (params[name] or None) != (_DEFAULTS[name] or None)]
    if filled:
        titles = ", ".join(f"'{_FIELDS[name].schema['title']}'" for name in filled)
        raise AirflowFailException(f"{because}, so leave these fields as they were: {titles}")
