"""The settings that switch the cluster's own balancer, as brokers store, remember and read them.

Source: Pulsar `ServiceConfiguration` (both settings are dynamic since 2.8 at the latest); `BrokersBase`,
`/admin/v2/brokers/configuration`; `FieldParser`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pulsar_advisor.execution.clock import Clock
from pulsar_advisor.execution.cluster.cluster_port import ClusterPort, Override, Reply
from pulsar_advisor.execution.ledger.switches import SwitchedOff
from pulsar_advisor.model.text.reader import reader

GUARDED: Final = ("loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled")
OFF: Final = "fALSE"
"""How the guard spells `false`. Pulsar ignores case (`Boolean.valueOf`) and stores the text as sent, so this spelling
identifies the guard's value, and any other `false` was set by somebody else."""
TAKES_EFFECT_S: Final = 5
"""How long brokers get to apply a changed setting; real ones took under a second."""
LOOK_AGAIN_S: Final = 0.5


def why_not_off(cluster: ClusterPort, clock: Clock) -> str | None:
    """Why the cluster's own balancer isn't off; None if it is. Raises `ClusterUnreachable`."""
    for setting in GUARDED:
        if not is_off(now := seen_override(cluster, setting, is_off, clock)):
            return (
                f"{setting} is {in_words(now)}, as somebody, or another process, switched the cluster's own balancer "
                "on again"
            )
    return None


def seen_override(
    cluster: ClusterPort, setting: str, expected: Callable[[str | None], bool], clock: Clock
) -> str | None:
    """The override of a setting. One answer may be wrong, so where it isn't as expected a second look decides."""
    if expected(now := cluster.override(setting)):
        return now
    clock.sleep(LOOK_AGAIN_S)
    return cluster.override(setting)


def has_acted(cluster: ClusterPort, setting: str, clock: Clock) -> bool:
    """Whether a call that switches a setting off has, by two looks: one wrong answer must not settle what is open."""
    return is_off(seen_override(cluster, setting, lambda now: not is_off(now), clock))


def set_override(
    cluster: ClusterPort,
    setting: str,
    before: str | None,
    value: str | None,
    clock: Clock,
    may_repeat: Callable[[Reply], bool],
) -> tuple[Reply, str | None]:
    """Override a setting, or delete its override (None); returns the last answer, and the override that shows then.

    A broker that has no time, or gave no answer, is asked again where the call `may_repeat` after that answer. As
    another broker may be read, from its cache, the effect gets some time.
    """
    reply, deadline_s = cluster.send(Override(setting, value)), clock.monotonic_s() + TAKES_EFFECT_S

    def seen() -> str | None:
        return seen_override(cluster, setting, lambda now: now in (before, value), clock)

    while (now := seen()) == before != value and clock.monotonic_s() < deadline_s:
        clock.sleep(LOOK_AGAIN_S)
        if reply.is_trouble and may_repeat(reply):
            reply = cluster.send(Override(setting, value))
    return reply, now


def why_elsewhere(switch: SwitchedOff, cluster: ClusterPort) -> str | None:
    """Why this may not be the cluster that was switched, but another one of its name, which is often the default."""
    if not switch.effective or cluster.active_brokers() & switch.effective.keys():
        return None
    return (
        f"none of the brokers on which run {switch.run} switched {switch.setting} off is active. Another cluster of "
        "that name needs a ledger of its own. If these brokers were replaced, to restore or leave the setting: "
        f"{reader().decide_about_balancer}"
    )


def lagging_brokers(switch: SwitchedOff, override: str | None, cluster: ClusterPort, clock: Clock) -> list[str]:
    """The brokers in whose memory a setting is off and shouldn't be; they get some time to follow."""
    deadline_s = clock.monotonic_s() + TAKES_EFFECT_S
    while True:
        now = cluster.effective(switch.setting)
        wanted = _values_before(switch, now) if override is None else dict.fromkeys(now, override)
        behind = sorted(broker for broker in now if is_off(now[broker]) and not is_off(wanted[broker]))
        if not behind or clock.monotonic_s() >= deadline_s:
            return behind
        clock.sleep(LOOK_AGAIN_S)


def _values_before(switch: SwitchedOff, now: Mapping[str, str]) -> Mapping[str, str]:
    """What each present broker had in memory before; if all brokers were replaced, what the earlier ones had."""
    common = common_value(switch.effective)
    if common is not None and now.keys().isdisjoint(switch.effective):
        return dict.fromkeys(now, common)
    return {**now, **switch.effective}


def common_value(effective: Mapping[str, str]) -> str | None:
    """The one value that all brokers had in memory; None if they differed, or it wasn't recorded."""
    values = set(effective.values())
    return values.pop() if len(values) == 1 else None


def is_off(value: str | None) -> bool:
    """Whether Pulsar, which doesn't trim it, reads a setting as false; None: it has no override."""
    return value is not None and value.lower() != "true"


def in_words(value: str | None) -> str:
    """An override for a sentence."""
    return "not overridden" if value is None else f"'{value}'"
