"""The verb history import."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.options import Json, WholeNumber
from pulsar_advisor.cli.output import log, print_json, say_lines
from pulsar_advisor.cli.places import LedgerPlace
from pulsar_advisor.history.exported import labels_of
from pulsar_advisor.model.bounds import DEFAULT_DAYS, IMPORT_DAYS, IMPORT_STEP, seconds
from pulsar_advisor.model.errors import UsageError


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PrometheusAccess:
    """How to authenticate to a Prometheus; none of a profile's credentials go there."""

    token_file: Path | None = None
    """File that holds the bearer token."""
    token_env: str | None = None
    """Name of the environment variable that holds the bearer token."""
    basic_user: str | None = None
    """User of basic authentication."""
    basic_password_file: Path | None = None
    """File that holds the user's password."""
    tls_ca_file: Path | None = None
    """CA certificates to trust instead of the system's."""
    tls_cert_file: Path | None = None
    """Client certificate."""
    tls_key_file: Path | None = None
    """Key of the client certificate."""


def import_days(
    *,
    prometheus: str,
    place: LedgerPlace = LedgerPlace(),
    access: PrometheusAccess = PrometheusAccess(),
    days: WholeNumber = DEFAULT_DAYS,
    step: str = "5m",
    label: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    json: Json = False,
) -> None:
    """Import past days from a Prometheus that scraped the brokers; started again, it goes on where it was.

    Parameters
    ----------
    prometheus
        Address of a Prometheus, or of a server with its API (Thanos, Mimir, VictoriaMetrics), with the path before
        /api/v1.
    days
        The number of days, including today.
    step
        Interval between two moments: 1m, 5m, 15m; not shorter than the scrape interval.
    label
        A label that has another name there: OURS=THEIRS, with ours one of cluster, namespace, topic, partition, bundle,
        instance; repeatable. Names with exported_ in front are found without it.
    """
    from pydantic import ValidationError

    from pulsar_advisor.admin.connection import AdminConnection
    from pulsar_advisor.admin.prometheus import READ_TIMEOUT_S, Prometheus
    from pulsar_advisor.admin.transport import AdminTransport
    from pulsar_advisor.model.text.problems import problems
    from pulsar_advisor.stages.import_history import run

    IMPORT_DAYS.check(days)
    IMPORT_STEP.check(step_s := seconds(step))
    try:
        connection = AdminConnection.model_validate(
            {**asdict(access), "admin_urls": (prometheus,), "read_timeout_s": READ_TIMEOUT_S}
        )
    except ValidationError as error:
        raise UsageError(problems(error)[0].replace("admin_urls", "--prometheus")) from error
    labels, root = labels_of(label), place.open()
    # Compressing an answer takes Prometheus nine times as long as making it.
    with AdminTransport(connection, compressed=False) as transport:
        of_days = run(
            root,
            Prometheus(transport),
            days=days,
            step_s=step_s,
            labels=labels,
            begun=log,
            ledger_address=place.existing_ledger(),
        )
        imported = list(of_days)
    print_json(imported) if json else say_lines([one.line for one in imported] or ["no day has data there"])
