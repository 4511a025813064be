"""The clusters of this installation: those of the registry, or the one that the configuration names.

The registry is a YAML file. It is checked as a whole: while an entry is invalid, no DAG is made from it.
"""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import yaml
from airflow.sdk import CronTriggerTimetable, get_parsing_context
from croniter import CroniterBadDateError, croniter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from pulsar_advisor.admin.strict_yaml import NOT_YAML, FastStrictLoader
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.strategy.entry import Strategy, find
from pulsar_advisor.model.text.problems import problems
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.proposals.configured import CONFIGURED
from pulsar_advisor.planning.requests.request import ALL
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor_airflow.configuration import option

REGISTRY_SCHEMA: Final = "pulsar-advisor/clusters/1"

DEEPEST: Final = 10
"""Maximum nesting of a registry, which needs three levels."""


def _no_literal(text: str) -> str:
    """Raise `ValueError` for a text such as 2024 or None, which a DAG's template would turn into another type."""
    try:
        literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    raise ValueError(f"'{text}' would become a value of Python in Airflow's templates: use a name")


def _strategy(known: Sequence[Strategy], kind: str, name: str) -> str:
    """Raise `ValueError` for a name that isn't one of a known strategy, nor of a choice."""
    if name not in (ALL, CONFIGURED):
        try:
            find(known, name, kind)
        except UsageError as error:
            raise ValueError(str(error)) from error
    return name


_Name = Annotated[str, AfterValidator(_no_literal)]
_Shedder = Annotated[str, AfterValidator(partial(_strategy, SHEDDERS, "shedder"))]
_Placement = Annotated[str, AfterValidator(partial(_strategy, PLACEMENTS, "placement strategy"))]


class Cluster(BaseModel):
    """One cluster: how Airflow reaches it, when it is captured, and how it is judged."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[_Name, Field(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,99}$")]
    """Part of every path in the root."""
    pulsar_conn_id: Annotated[_Name, Field(min_length=1)]
    zookeeper_conn_id: _Name | None = None
    """Connection of type `pulsar_zookeeper` or `pulsar_oxia`."""
    schedule: str | None = Field(default_factory=lambda: option("snapshot_schedule"), validate_default=True)
    """Cron expression of its snapshots, in UTC; null: only manual ones. A preset such as @daily is expanded."""
    shedder: _Shedder = ALL
    """What `pulsar_recommend` asks for by default."""
    placement: _Placement = ALL
    approval_policy: str = Field(default_factory=lambda: option("approval_policy"))
    """Path of its approval policy."""

    @field_validator("schedule")
    @classmethod
    def _as_cron(cls, schedule: str | None) -> str | None:
        if schedule is None:
            return None
        # Airflow has a preset that croniter doesn't know, and vice versa.
        expression = str(CronTriggerTimetable(schedule, timezone="UTC").expression)
        if not croniter.is_valid(expression):
            raise ValueError(f"'{schedule}' is not a cron expression, like */15 * * * *")
        try:
            croniter(expression).get_next()
        except CroniterBadDateError as error:
            raise ValueError(f"'{schedule}' never comes") from error
        return expression


class _Registry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_name: Annotated[Literal["pulsar-advisor/clusters/1"], Field(alias="schema")]
    clusters: Annotated[tuple[Cluster, ...], Field(min_length=1)]

    @field_validator("clusters")
    @classmethod
    def _named_once(cls, clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
        if twice := [name for name, times in Counter(each.name for each in clusters).items() if times > 1]:
            raise ValueError(f"more than one is named {some_of(twice)}")
        return clusters


def clusters() -> Mapping[str, Cluster]:
    """The clusters by name, in the order of the registry. Raises `UsageError` that lists what is wrong with it."""
    source = option("clusters")
    if not source:
        name = option("cluster")
        connections = {key: option(key) or None for key in ("pulsar_conn_id", "zookeeper_conn_id")}
        return {name: _checked("[pulsar_advisor] cluster", Cluster, {"name": name, **connections})}
    return _read(source, _content(source))


def cluster(name: str) -> Cluster:
    """A cluster by its name. Raises `UsageError` with the known names."""
    known = clusters()
    if name not in known:
        raise UsageError(f"there is no cluster '{name}'; there are: {some_of(list(known))}")
    return known[name]


def labelled(base: str, cluster: Cluster) -> str:
    """The id of a cluster's DAG, or its asset's name: `pulsar_snapshot__prod-eu`; the bare name without a registry."""
    return f"{base}__{cluster.name}" if option("clusters") else base


def dag_of(base: str, name: str) -> str:
    """The id of the DAG of a cluster by its name, to be said to a reader: the bare one where that can't be known."""
    with suppress(UsageError):  # no message may end a task that has moved bundles
        if (found := clusters().get(name)) is not None:
            return labelled(base, found)
    return base


def cluster_of(dag: str) -> str:
    """The name of the cluster whose DAG has this id; empty for a DAG of none or of all clusters of a registry."""
    if not option("clusters"):
        return option("cluster")
    name = dag.partition("__")[2]
    with suppress(UsageError):
        return name if name in clusters() else ""
    return ""


def clusters_to_build(base: str) -> Iterator[Cluster]:
    """The clusters whose DAGs this process needs: all of them, or in a task only the one whose DAG it runs."""
    running = get_parsing_context().dag_id
    for each in clusters().values():
        if running in (None, labelled(base, each)):
            yield each


def _content(source: str) -> str:
    if source.startswith("variable:"):
        raise UsageError(
            f"[pulsar_advisor] clusters is '{source}': a Variable would be asked for whenever a DAG file is read; put "
            "the registry into a file"
        )
    try:
        return Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read the registry of clusters {source}: {error}") from error


@lru_cache(maxsize=1)
def _read(source: str, content: str) -> Mapping[str, Cluster]:
    """The registry, read anew only when its text has changed."""
    try:
        # Python's own parser takes seconds for 500 clusters.
        if _depth(yaml.parse(content, Loader=FastStrictLoader)) > DEEPEST:
            raise UsageError(f"the registry of clusters {source} is nested more than {DEEPEST} levels deep")
        document = yaml.load(content, Loader=FastStrictLoader)
    except NOT_YAML as error:
        raise UsageError(f"the registry of clusters {source} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or document.get("schema") != REGISTRY_SCHEMA:
        raise UsageError(f"the registry of clusters {source} must begin with 'schema: {REGISTRY_SCHEMA}'")
    registry: _Registry = _checked(f"the registry of clusters {source}", _Registry, document)
    return {each.name: each for each in registry.clusters}


def _depth(events: Iterable[yaml.Event]) -> int:
    """The nesting of a document. libyaml's composer recurses in C, where too many levels crash the process."""
    deepest = depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
    return deepest


T = TypeVar("T", bound=BaseModel)


def _checked(where: str, model: type[T], document: object) -> T:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise UsageError(f"{where} is not valid: {some_of(problems(error))}") from error
