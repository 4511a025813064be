"""`snapshots show`: the content of a snapshot, its gaps, and the stages that have processed it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.documents.snapshot_summary import SnapshotSummary
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.reporting.figures import moment

_LINES_SHOWN: Final = 10


def summary_lines(found: SnapshotSummary) -> Iterator[str]:
    """The summary as lines for people."""
    yield f"snapshot     {found.snapshot} of cluster '{found.cluster_name}', {moment(found.started_at_ms)}"
    release = f"Pulsar {found.pulsar_version}, load manager {found.load_manager}"
    yield f"cluster      {count(len(found.brokers), 'broker')}, {release}"
    skew = f"{found.skew_ms / 1000:.1f} s between first and last read"
    sources = " and ".join(["admin REST"] * found.admin_rest + ["the metadata store"] * found.zookeeper)
    yield f"captured     in {found.duration_ms / 1000:.1f} s ({skew}) from {sources}; {found.bytes:,} bytes"
    for surface, rows in sorted(found.surfaces.items()):
        yield f"  {surface:<22} {rows:>12,} {'line' if rows == 1 else 'lines'}"
    for label, entries in (("missing", found.missing), ("unreadable", found.failures)):
        yield f"{label:<12} {len(entries) or 'nothing'}"
        yield from (f"  {entry}" for entry in entries[:_LINES_SHOWN])
        if len(entries) > _LINES_SHOWN:
            yield f"  and {len(entries) - _LINES_SHOWN} more: see --json"
    if found.incomplete_brokers:
        yield f"incomplete   {', '.join(found.incomplete_brokers)}"
    yield f"moved        {count(found.moved_bundles, 'bundle')} while it was captured"
    for stage, result in found.stages.items():
        yield f"{stage:<12} {result}"


def summary(manifest: Manifest, stages: Mapping[str, str]) -> SnapshotSummary:
    """The summary of a snapshot; `stages` is the field of that name."""
    surfaces: defaultdict[str, int] = defaultdict(int)
    for file in manifest.files:
        surfaces[file.surface] += file.rows
    return SnapshotSummary(
        snapshot=manifest.snapshot,
        cluster_name=manifest.identity.cluster_name,
        started_at_ms=manifest.started_at_ms,
        duration_ms=manifest.finished_at_ms - manifest.started_at_ms,
        skew_ms=manifest.skew_ms,
        brokers=manifest.identity.broker_ids,
        pulsar_version=manifest.pulsar_version,
        load_manager=manifest.load_manager,
        admin_rest=bool(manifest.sources.admin_urls),
        zookeeper=manifest.sources.zookeeper,
        bytes=sum(file.bytes for file in manifest.files),
        surfaces=dict(surfaces),
        missing=tuple(_lack(one.surface, (one.broker, one.namespace), one.reason) for one in manifest.missing),
        failures=tuple(_lack(one.surface, (one.broker,), one.error) for one in manifest.failures),
        incomplete_brokers=manifest.incomplete_brokers,
        moved_bundles=len(manifest.moved_bundles),
        stages=stages,
    )


def _lack(surface: str, of: Iterable[str | None], reason: str) -> str:
    where = " ".join(filter(None, of))
    return f"{surface}{f' of {where}' if where else ''}: {reason}"


def of_tables(made: TablesResult) -> str:
    """The result of `normalize` in words."""
    return f"{sum(made.tables.values()):,} rows, {count(made.problems, 'problem')}"


def of_validation(validation: Validation) -> str:
    """The result of `validate` in words."""
    failed = Counter(check.severity for check in validation.results if not check.success)
    counts = ", ".join(f"{number} {severity}" for severity, number in sorted(failed.items())) or "nothing"
    return f"{'fit' if validation.success else 'not fit'} for use; failed: {counts}"


def of_recommendation(made: Recommendation) -> str:
    """What `recommend` advises, in words."""
    plans = sum(one.plan is not None for one in made.combinations)
    return f"{count(plans, 'plan')}; advice: {made.advice.plan or made.advice.sentence}"
