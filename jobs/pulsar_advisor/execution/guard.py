"""The guard: keeps the cluster's own balancer from moving and splitting bundles during a run.

It switches off two dynamic settings before the first step and restores their overrides, or the absence of one, at the
end. It records each switch in the ledger before it changes the setting. So the ledger shows what a crash left off, and
the next command that reaches the cluster restores it.
Source: Pulsar `ServiceConfiguration` (both settings are dynamic since 2.8 at the latest); `BrokersBase`,
`/admin/v2/brokers/configuration`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pulsar_advisor.execution.cluster_port import ClusterPort, Override
from pulsar_advisor.execution.ledger import HeldRun, Ledger, SwitchedOff
from pulsar_advisor.model.errors import Refused

GUARDED: Final = ("loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled")
OFF: Final = "false"

Progress = Callable[[str], None]


@contextmanager
def guarded(run: HeldRun, ledger: Ledger, cluster: ClusterPort, progress: Progress) -> Iterator[None]:
    """Keep the cluster's own balancer off until the block ends, normally or by an exception.

    Raises `Refused` if it can't be switched off; then all settings are as before.
    """
    try:
        for setting in GUARDED:
            before = cluster.override(setting)
            if before != OFF:
                run.switching_off(setting, before)
                run.renew()  # raises if this process was suspended and another one has taken over
                reply = cluster.send(Override(setting, OFF))
                if cluster.override(setting) != OFF:
                    raise Refused(
                        f"{setting} can't be switched off: answer {reply}; switch it off by hand, and approve and "
                        "apply without --guard"
                    )
                progress(f"{setting} is off while the plan is carried out; it was {_value(before)}")
        yield
    finally:
        try:
            for switch in ledger.switched_off(run.cluster_name):
                if switch.run == run.id and not run.is_overtaken():  # else the run continues elsewhere, under our guard
                    _restore(switch, ledger, cluster, progress)
        except Exception as error:  # must not hide why the run ended; the ledger records what is still off
            progress(
                f"ATTENTION: the cluster's own balancer could not be switched on again: {error}; the next `apply` on "
                "this cluster tries once more, also with --abort"
            )


def restore_what_was_left(ledger: Ledger, cluster_name: str, cluster: ClusterPort, progress: Progress) -> None:
    """Restore settings left off by runs that have ended or whose process is gone, with a prominent message."""
    for switch in left_off(ledger, cluster_name):
        progress(warning(switch, cluster_name))
        _restore(switch, ledger, cluster, progress)


def left_off(ledger: Ledger, cluster_name: str) -> Sequence[SwitchedOff]:
    """Settings left off by runs that have ended or whose process is gone."""
    return [switch for switch in ledger.switched_off(cluster_name) if not ledger.is_held(ledger.run(switch.run))]


def warning(switch: SwitchedOff, cluster_name: str) -> str:
    """A warning for a person: which setting is off, since which run, and its previous value."""
    return (
        f"ATTENTION: {switch.setting} of cluster '{cluster_name}' was switched off by run {switch.run} and not put "
        f"back (it was {_value(switch.before)})"
    )


def _restore(switch: SwitchedOff, ledger: Ledger, cluster: ClusterPort, progress: Progress) -> None:
    if (now := cluster.override(switch.setting)) != OFF:
        ledger.switched_back(switch, f"left at {_value(now)}, which someone has set meanwhile")
        progress(f"{switch.setting} is {_value(now)}: someone has set it meanwhile, so it stays")
        return
    reply = cluster.send(Override(switch.setting, switch.before))
    if (now := cluster.override(switch.setting)) == switch.before:
        ledger.switched_back(switch, f"restored: {_value(now)}")
        progress(f"{switch.setting} is restored: {_value(now)}")
    else:
        progress(
            f"ATTENTION: {switch.setting} is still {_value(now)}: answer {reply}; put back {_value(switch.before)}"
        )


def _value(value: str | None) -> str:
    return "not overridden" if value is None else f"'{value}'"
