"""What each broker says about itself: settings, release, load report, statistics of its topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pulsar_advisor.admin.read_client import ReadClient, decode
from pulsar_advisor.capture.documents import LOAD_REPORT, broker_metrics
from pulsar_advisor.capture.journal import now_ms
from pulsar_advisor.capture.session import BrokerRead, Session
from pulsar_advisor.model.cluster_state import LoadManagerKind
from pulsar_advisor.model.settings import ALLOWED_KEYS

DEFAULT_STATISTICS_INTERVAL_S: Final = 60
"""Of `statsUpdateFrequencyInSecs`."""

Line = dict[str, Any]

_KIND_OF_REPORT: Mapping[str, LoadManagerKind] = {"LocalBrokerData": "modular", "LoadReport": "simple"}
_KIND_OF_CLASS: tuple[tuple[str, LoadManagerKind], ...] = (
    ("ExtensibleLoadManager", "extensible"),
    ("ModularLoadManager", "modular"),
    ("SimpleLoadManager", "simple"),
)


@dataclass(frozen=True)
class BrokerFacts:
    """By broker id, as far as the brokers answered."""

    releases: dict[str, str] = field(default_factory=dict)
    clocks_ahead_ms: dict[str, int] = field(default_factory=dict)
    """How far a broker's clock certainly is ahead of ours, negative if behind; 0 where they may be the same."""
    load_manager_classes: dict[str, str] = field(default_factory=dict)
    load_managers: dict[str, LoadManagerKind] = field(default_factory=dict)
    statistics_intervals: dict[str, str] = field(default_factory=dict)
    """`statsUpdateFrequencyInSecs`."""
    load_reports: dict[str, Line] = field(default_factory=dict)
    broker_metrics: dict[str, Line] = field(default_factory=dict)
    """Lines of these surfaces, of which a broker has one or the other: written when nothing more is read."""
    table_view_classes: dict[str, str] = field(default_factory=dict)
    """Where an Extensible broker keeps its ownership channel: `loadManagerServiceUnitStateTableViewClassName`."""

    read_again: list[str] = field(default_factory=list)
    """Ids of those whose load and topics are from a second pass."""

    def reported_bundles(self) -> dict[str, Collection[str]]:
        """By broker, the bundles of whose load its report tells."""
        documents = {broker: line["document"] for broker, line in self.load_reports.items()}
        return {broker: (report.lastStats or report.bundleStats or {}) for broker, report in documents.items()}

    def statistics_interval_s(self) -> float:
        """After so many seconds every broker has had a pass of its statistics."""
        intervals = [int(text) for text in self.statistics_intervals.values() if text.isdecimal()]
        return max(intervals, default=DEFAULT_STATISTICS_INTERVAL_S)


def read_brokers(session: Session) -> BrokerFacts:
    """Read each broker's settings, release, load and topics; `write_load` is still to be called."""
    facts = BrokerFacts()

    def read_settings(client: ReadClient, broker: str) -> None:
        values = client.runtime_configuration(broker)
        class_name = values.get("loadManagerClassName", "")
        facts.load_manager_classes[broker] = class_name
        facts.table_view_classes[broker] = values.get("loadManagerServiceUnitStateTableViewClassName", "")
        facts.statistics_intervals[broker] = values.get("statsUpdateFrequencyInSecs", "")
        if (kind := load_manager_kind(None, class_name)) is not None:
            facts.load_managers[broker] = kind
        session.files.extend("settings", [settings_line("runtime", broker, values)])

    def read_release(client: ReadClient, broker: str) -> None:
        facts.releases[broker], clock = client.version_and_clock(broker)
        if clock is not None:
            facts.clocks_ahead_ms[broker] = round(clock.certain_s * 1000)

    reads = [("settings", read_settings), ("brokers", read_release), *_load(session, facts)]
    session.at_each_broker("settings, load and topics", session.brokers, reads)
    return facts


def read_load_again(session: Session, facts: BrokerFacts, brokers: Sequence[str]) -> None:
    """Read the load and the topics of some brokers in place of what was read of them before."""
    session.at_each_broker("load and topics again", brokers, _load(session, facts))
    facts.read_again.extend(brokers)


def write_load(session: Session, facts: BrokerFacts) -> None:
    """Write what was read last of each broker's load."""
    for surface, lines in (("load_reports", facts.load_reports), ("broker_metrics", facts.broker_metrics)):
        if lines:
            session.files.extend(surface, lines.values())


def _load(session: Session, facts: BrokerFacts) -> list[BrokerRead]:
    def read_metrics(broker: str) -> None:
        with session.journal.attempt("broker_metrics", broker):
            metrics = broker_metrics(session.client("broker_metrics", broker).broker_metrics(broker))
            facts.broker_metrics[broker] = {"broker": broker, "readAt": now_ms(), "document": metrics}

    def read_load_report(client: ReadClient, broker: str) -> None:
        if facts.load_managers.get(broker) == "extensible":
            session.journal.lack("load_reports", "under the Extensible load manager, whose load is in broker_metrics")
            read_metrics(broker)
            return
        report = decode(client.load_report(broker), LOAD_REPORT)
        report_type = report.loadReportType or None
        if (kind := load_manager_kind(report_type, facts.load_manager_classes.get(broker))) is not None:
            facts.load_managers[broker] = kind
        facts.load_reports[broker] = {"source": "rest", "broker": broker, "readAt": now_ms(), "document": report}

    def read_topics(client: ReadClient, broker: str) -> None:
        with session.documents.room() as settle:
            document = client.broker_topics(broker)
            settle(len(document.body))
            file = session.decoders.topic_file(broker, document)
        number = session.brokers.index(broker)
        session.files.write(f"topic_stats/{number}.jsonl.zst", "topic_stats", broker, file)

    return [("load_reports", read_load_report), ("topic_stats", read_topics)]


def settings_line(origin: str, broker: str | None, values: Mapping[str, str]) -> dict[str, object]:
    """One line of `settings`: only keys of the allow-list, as a configuration may hold any secret."""
    kept = {key: values[key] for key in sorted(values.keys() & ALLOWED_KEYS)}
    return {"origin": origin, "broker": broker, "values": kept}


def load_manager_kind(report_type: str | None, class_name: str | None) -> LoadManagerKind | None:
    """Which manager a broker runs: by its load report's type, else by `loadManagerClassName`; None if neither tells."""
    if report_type is not None and report_type in _KIND_OF_REPORT:
        return _KIND_OF_REPORT[report_type]
    simple_name = (class_name or "").rpartition(".")[2]
    return next((kind for prefix, kind in _KIND_OF_CLASS if simple_name.startswith(prefix)), None)


def prevailing_load_manager(kinds: Mapping[str, LoadManagerKind], leader: str | None) -> LoadManagerKind | None:
    """The leader's manager, as it is the one that decides; without a leader, the one most brokers run."""
    if leader is not None and leader in kinds:
        return kinds[leader]
    found = list(kinds.values())
    return max(sorted(set(found)), key=found.count, default=None)


def oldest_release(releases: Collection[str]) -> str | None:
    """The oldest of some releases; a milestone or a snapshot counts as its release."""
    return min(
        sorted(releases), key=lambda release: [int(part) for part in re.findall(r"\d+", release)[:3]], default=None
    )
