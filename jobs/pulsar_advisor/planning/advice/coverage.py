"""How much of a cluster's load could be judged, and whether that is enough for an answer about the whole cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    CPU,
    NO_ROW,
    Booleans,
    Brokers,
    ClusterState,
    Floats,
    possible,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.planning.proposals.fitness import judged_bundles

LEAST_SHOWN: Final = 0.0005
"""The least share that isn't written as zero."""
_ALL_JUDGED: Final = "All of the load could be judged."
_MOST_UNJUDGED_RATIO: Final = 0.1
"""An answer about a cluster needs at least the rest of its load."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How much of the load could be judged, and what was set aside, in numbers and in words; shares are 0..1, and 1
    where there is no traffic.

    Fields with a default may be missing in files of earlier releases.
    """

    judged_ratio: float | None = None
    """Share of the cluster's throughput in usable bundles of known, complete brokers."""
    judged_msg_rate_ratio: float | None = None
    """Likewise for its message rate."""
    unmeasured_bundles: int = 0
    """Owned bundles that could not be judged and whose load is unknown, or all bundles if no broker reports an owner or
    load; the shares leave them out."""
    unmeasured_ratio: float = 0.0
    """Their share of the owned bundles, or of all."""
    excluded_brokers: tuple[str, ...] = ()
    excluded_namespaces: tuple[str, ...] = ()
    excluded_bundles: int = 0
    busiest: str = ""
    """The broker that can't be judged and is the busiest of all, or may be, and why; empty if there is none."""
    set_aside_by: tuple[str, ...] = ()
    """The checks that set something aside."""
    sentence: str | None = None
    """What could not be judged, for an operator."""
    decides: bool = False
    """Whether too little could be judged to say that nothing needs doing, or that something fits or is enough."""
    why: str = ""
    """What has to be said before any answer: what can't be judged, and why; empty unless it decides."""

    @property
    def shortfall(self) -> str:
        """What could not be judged, and what was left out for that, in sentences; empty if all could be judged, and if
        it decides, which `why` says."""
        parts = [some_of(self.excluded_brokers)] if self.excluded_brokers else []
        counts = ((len(self.excluded_namespaces), "namespace"), (self.excluded_bundles, "bundle"))
        parts += [count(number, noun) for number, noun in counts if number]
        left_out = f" Left out: {'; '.join(parts)}." if parts else ""
        return "" if self.decides or (self.sentence == _ALL_JUDGED and not parts) else f"{self.sentence}{left_out}"

    def headline(self, answer: str, *, claims_enough: bool) -> str:
        """An answer about the cluster, after what can't be judged if that decides.

        `claims_enough`: it says that nothing needs doing. Only a judgement of everything shows that, so it is dropped.
        """
        if not self.decides:
            return answer
        if claims_enough:
            return f"{self.why} No advice without it: look at `validate`, then capture again."
        return f"{self.why} For the rest: {answer}"


def _sentence(shares: tuple[float, float], unmeasured_bundles: int) -> str:
    """`shares` are those of the bytes and of the messages that could be judged."""
    lost = (("messages", 1.0 - shares[1]), ("bytes", 1.0 - shares[0]))
    parts = [
        f"{f'{ratio:.1%}' if ratio >= LEAST_SHOWN else 'less than 0.1%'} of the {what}"
        for what, ratio in lost
        if ratio > 0
    ]
    if unmeasured_bundles:
        parts.append(f"the load of {count(unmeasured_bundles, 'bundle')} without figures")
    if not parts:
        return _ALL_JUDGED
    what = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"{what[0].upper()}{what[1:]} could not be judged."


def _why(sentence: str, busiest: str, set_aside_by: Sequence[str], *, all_of_it: bool) -> str:
    """Why too little of a cluster could be judged; `all_of_it`: all of the load could be, as far as it was measured."""
    because = f" (see {some_of(set_aside_by)})" if set_aside_by else ""
    if busiest and all_of_it:
        return f"Too little can be judged: {busiest}{because}."
    first = f"{busiest}. " if busiest else ""
    return f"Too little can be judged: {first}{sentence.removesuffix('.')}{because}."


def coverage(
    state: ClusterState,
    settings: LoadBalancerSettings,
    published: ClusterState | None = None,
    set_aside_by: Sequence[str] = (),
) -> Coverage:
    """How much of the load of a whole state, unfit parts included, could be judged.

    `published` is what the leader sees, which may show how busy a broker is that didn't answer; `set_aside_by` names
    the failed checks that set something aside.
    """
    bundles = state.bundles
    # Strategies leave out bundles with figures but no known owner: nothing says which broker has their load.
    judged = judged_bundles(state) & ~(bundles.reported & (bundles.owner == NO_ROW))
    measured = possible(bundles.traffic)
    traffic = np.where(measured[:, None], bundles.traffic, 0.0)
    owned, reporting = bundles.owner != NO_ROW, state.brokers.report_updated_at_ms > 0
    none_reports = not (owned.any() or reporting.any())
    silent = owned & ~reporting[bundles.owner]
    unmeasured = none_reports | (~judged & (silent | ~measured))
    unusable = np.bincount(bundles.namespace, weights=~bundles.usable, minlength=len(state.namespaces))
    bundles_of = np.bincount(bundles.namespace, minlength=len(state.namespaces))
    whole = (bundles_of > 0) & (unusable == bundles_of)
    shares = (_share(throughput_bytes_per_s(traffic), judged), _share(rate_per_s(traffic), judged))
    unmeasured_ratio = float(unmeasured.sum() / max(len(bundles) if none_reports else owned.sum(), 1))
    busiest = _busiest_unjudged(state, settings, published)
    decides = bool(busiest) or max(1.0 - min(shares), unmeasured_ratio) > _MOST_UNJUDGED_RATIO
    all_of_it = min(*shares, 1.0 - unmeasured_ratio) >= 1.0
    sentence = _sentence(shares, int(unmeasured.sum()))
    if busiest and all_of_it:
        sentence = f"{sentence.removesuffix('.')}, but not each broker: {busiest}."
    return Coverage(
        judged_ratio=shares[0],
        judged_msg_rate_ratio=shares[1],
        unmeasured_bundles=int(unmeasured.sum()),
        unmeasured_ratio=unmeasured_ratio,
        excluded_brokers=_names(state.brokers.ids, ~state.brokers.complete),
        excluded_namespaces=_names(state.namespaces.names, whole),
        excluded_bundles=int((~bundles.usable).sum()),
        busiest=busiest,
        set_aside_by=tuple(set_aside_by),
        sentence=sentence,
        decides=decides,
        why=_why(sentence, busiest, set_aside_by, all_of_it=all_of_it) if decides else "",
    )


def _busiest_unjudged(state: ClusterState, settings: LoadBalancerSettings, published: ClusterState | None) -> str:
    """The broker that is, or may be, the busiest of all, among those with bundles that were set aside or have no limit
    to compare their usage with; empty without one."""
    brokers = state.brokers
    owns = np.bincount(state.bundles.owner[state.bundles.owner != NO_ROW], minlength=len(brokers)) > 0
    usage, shown = _known_usage(brokers, settings), _by_broker(published, settings)
    highest = float(usage[brokers.fit].max(initial=0.0))
    # To Pulsar a resource without a limit is idle; how busy it is isn't known.
    without_limit = ~((brokers.limit[:, CPU] > 0) & possible(brokers.limit[:, [CPU]]))
    for row in np.flatnonzero(brokers.fit & without_limit & owns).tolist():
        return f"{brokers.ids[row]} reports an impossible CPU limit, and nothing shows how busy it is"
    known: dict[str, float] = {}
    for row in np.flatnonzero(brokers.available & ~brokers.complete & owns).tolist():
        broker = brokers.ids[row]
        known[broker] = shown.get(broker, float("nan")) if np.isnan(usage[row]) else float(usage[row])
    for broker, ratio in known.items():
        if np.isnan(ratio):
            return f"{broker} was set aside, and nothing shows how busy it is"
    busiest = max(known, key=lambda broker: known[broker], default="")
    if not busiest or known[busiest] < highest or not known[busiest]:
        return ""
    return f"{busiest} was set aside, and is the busiest by what it reported last ({known[busiest]:.1%})"


def _by_broker(published: ClusterState | None, settings: LoadBalancerSettings) -> dict[str, float]:
    if published is None:
        return {}
    return dict(zip(published.brokers.ids, _known_usage(published.brokers, settings).tolist(), strict=True))


def _known_usage(brokers: Brokers, settings: LoadBalancerSettings) -> Floats:
    """The usage of each broker; NaN without a report, or with impossible figures."""
    known = (brokers.report_updated_at_ms > 0) & possible(brokers.usage, lowest=-1.0)
    return np.where(known, usage_ratios(brokers, settings), np.nan)


def _share(figure: Floats, judged: Booleans) -> float:
    total = float(figure.sum())
    return float(figure[judged].sum()) / total if total > 0 else 1.0


def _names(names: tuple[str, ...], marked: Booleans) -> tuple[str, ...]:
    return tuple(names[row] for row in np.flatnonzero(marked))
