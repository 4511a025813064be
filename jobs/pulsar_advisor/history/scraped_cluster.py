"""One cluster as a Prometheus knows it: its brokers' figures, the most detailed level of load, and that load."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from pulsar_advisor.admin.prometheus import POINTS, Prometheus, Question, Samples, Window
from pulsar_advisor.history.exported import (
    BUNDLES,
    HOST_METRICS,
    JOB,
    LEVELS,
    NAMESPACES,
    STARTED,
    TOPICS,
    VERSION,
    VERSION_LABEL,
    Labels,
    Level,
    broker_of,
    of_namespaces,
    selector,
    topic_of,
)
from pulsar_advisor.history.imported import ScrapedHosts
from pulsar_advisor.history.ring import Ring, namespace_of
from pulsar_advisor.history.scraped import Exporter, Places, Scraped
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.text.some_of import some_of

_COUNTED_S: Final = 3 * 60 * 60
"""Series are counted over this long at a time."""
_LOOKBACK_S: Final = 5 * 60
"""Maximum age of a sample, Prometheus's default: the first moment may show the day before."""
_HOST_MOMENTS: Final = 1_000
"""Moments of broker figures per query: there are at most about a thousand brokers."""


@dataclass(frozen=True)
class ScrapedCluster:
    """Where the series of one cluster are, and how they are labelled there."""

    server: Prometheus
    cluster_name: str
    labels: Labels
    broker_ids: tuple[str, ...]

    def require_known(self, window: Window) -> None:
        """Refuse a server without data about the cluster's brokers in this period."""
        label = self.labels.cluster
        query = f"count by ({label}) (last_over_time({HOST_METRICS['cpu_usage']}[1d]))"
        names = {name for (name,) in self.server.ask(Question(query, window, (label,))).labels if name}
        if self.cluster_name not in names:
            others = f"it has clusters: {some_of(names)}" if names else "it has none: does it scrape /metrics?"
            raise DataNotFit(
                f"{self.server.address} has no broker of cluster '{self.cluster_name}' in label {label}; {others}; if "
                "the label has another name, give it with --label cluster=NAME"
            )

    def hosts(self, window: Window) -> ScrapedHosts:
        """The figures of the brokers. Raises `DataNotFit` if their series lack a label."""
        hosts = ScrapedHosts(window.number)
        labels = (self.labels.instance, JOB, VERSION_LABEL)
        metrics = {**HOST_METRICS, "started": STARTED, "version": VERSION}
        asked = [(column, metric, *part) for column, metric in metrics.items() for part in window.parts(_HOST_MOMENTS)]
        questions = (
            Question(selector(metric, self.labels, self.cluster_name), part, labels) for _, metric, _, part in asked
        )
        processes = set[tuple[str, ...]]()
        for (column, _, first, _), samples in zip(asked, self.server.answers(questions), strict=True):
            if column in HOST_METRICS:
                processes.update(of[:2] for of in samples.labels)
            # Bookies and proxies say when they started, too.
            places = [place for place, of in enumerate(samples.labels) if of[:2] in processes]
            found, figures = [samples.labels[place] for place in places], samples.figures[places]
            if any(not instance for instance, *_ in found):
                raise DataNotFit(
                    f"series of {metrics[column]} at {self.server.address} lack the label {self.labels.instance}: if "
                    "it has another name, give it with --label instance=NAME"
                )
            brokers = [broker_of(instance, self.broker_ids) for instance, *_ in found]
            if column == "version":
                hosts.add_versions(first, brokers, [version for *_, version in found], figures)
            else:
                hosts.add(column, first, brokers, figures)
        return hosts

    def level(self, window: Window) -> tuple[Level, Mapping[str, int]]:
        """The most detailed level with figures, and the number of series by namespace, or by bundle.

        Without any figures the least detailed one, of which owners and brokers' traffic aren't known either.
        """
        of_day = Window(window.start_s + _COUNTED_S, _COUNTED_S, (window.end_s - window.start_s) // _COUNTED_S + 1)
        for level in LEVELS:
            label = self.labels.bundle if level is BUNDLES else self.labels.namespace
            figures = selector(level.metrics[0], self.labels, self.cluster_name, level.matchers(self.labels))
            query = f"count by ({label}) (last_over_time({figures}[{_COUNTED_S + _LOOKBACK_S}s]))"
            samples = self.server.ask(Question(query, of_day, (label,)))
            found = {name: int(most) for (name,), most in zip(samples.labels, _most(samples), strict=True) if most}
            if level is NAMESPACES and len(found) > 1:
                found.pop("", None)  # up to 2.11 brokers also export zeros of their own, under the same names
            if "" in found:
                raise DataNotFit(
                    f"{found['']:,} series of {level.metrics[0]} at {self.server.address} lack the label {label}: if "
                    f"it has another name, give it with --label"
                )
            if found:
                return level, found
        return NAMESPACES, {}

    def load(
        self, window: Window, level: Level, ring: Ring, group: tuple[str, ...], series: int
    ) -> tuple[Scraped, int]:
        """What the server has about namespaces, and how many samples were unusable."""
        scraped, unusable = Scraped(window.number), 0
        if not series:
            return scraped, 0
        names = self.labels
        labels = (names.instance, names.namespace, level.subject_label(names), names.partition)
        matchers = (level.matchers(names), of_namespaces(level, names, group))
        number = max(POINTS // series, 1)
        asked = [(figure, *part) for figure in range(len(level.metrics)) for part in window.parts(number)]
        questions = (
            Question(selector(level.metrics[figure], names, self.cluster_name, *matchers), part, labels)
            for figure, _, part in asked
        )
        exporters = Exporters(self.broker_ids, level, ring)
        for (figure, first, _), samples in zip(asked, self.server.answers(questions), strict=True):
            unusable += samples.unusable
            scraped.add(figure, first, exporters.places(samples.labels), samples.figures)
        return scraped, unusable


def labels_on(server: Prometheus, labels: Labels, cluster_name: str, window: Window) -> Labels:
    """The labels by their names on this server; restricted to this cluster if the server has series of it."""
    exported = f"exported_{labels.cluster}"
    wanted = (labels.cluster, *(f"exported_{name}" for name in vars(labels).values()))
    metrics = (level.metrics[0] for level in (TOPICS, BUNDLES))
    one_each = (f"topk by ({labels.cluster}, {exported}) (1, {metric})" for metric in metrics)
    answers = server.answers(Question(query, window, wanted) for query in one_each)
    series = [dict(zip(wanted, found, strict=True)) for samples in answers for found in samples.labels]
    ours = [one for one in series if cluster_name in (one[labels.cluster], one[exported])]
    return labels.replaced({name for one in ours or series for name, value in one.items() if value})


def _most(samples: Samples) -> list[float]:
    return [float(one) for one in np.nan_to_num(samples.figures).max(axis=1, initial=0)]


class Exporters:
    """Assigns the series of one level to the bundles of a ring, and to the brokers that export them."""

    def __init__(self, broker_ids: Collection[str], level: Level, ring: Ring) -> None:
        self._level = level
        self._ring = ring
        self._numbers = {name: number for number, name in enumerate(ring.names)}
        self._last: tuple[Sequence[tuple[str, ...]], Places] | None = None
        self._broker = lru_cache(maxsize=None)(lambda instance: broker_of(instance, broker_ids))

    def places(self, labels: Sequence[tuple[str, ...]]) -> Places:
        """Where series belong, by their labels: instance, namespace, subject, and partition.

        Series of a namespace count in equal shares for each of its bundles; if there are several, their owners are
        unknown. Raises `DataNotFit` for series that weren't asked for.
        """
        if self._last is not None and self._last[0] == labels:  # as with each figure of the same topics
            return self._last[1]
        exporters: list[Exporter] = []
        series: list[int] = []
        shares: list[float] = []
        for number, (instance, namespace, subject, partition) in enumerate(labels):
            broker = self._broker(instance)
            if self._level is TOPICS:
                subject = topic_of(subject, partition)
            if self._level is BUNDLES:
                namespace = namespace_of(subject)
            if namespace not in self._ring or (self._level is BUNDLES and subject not in self._numbers):
                raise DataNotFit(f"the server returned {subject[:200]!r} of {namespace[:200]!r}, not requested")
            if self._level is NAMESPACES:
                bundles = self._ring.bundles_of(namespace)
                owner, of = ("", broker) if len(bundles) > 1 else (broker, namespace)
                exporters += [Exporter(bundle, owner, of) for bundle in bundles]
                series += [number] * len(bundles)
                shares += [1 / len(bundles)] * len(bundles)
            else:
                bundle = self._numbers[subject] if self._level is BUNDLES else self._ring.bundle_of(namespace, subject)
                exporters.append(Exporter(bundle, broker, subject))
                series.append(number)
                shares.append(1)
        found = Places(exporters, series, shares)
        self._last = (labels, found)
        return found
