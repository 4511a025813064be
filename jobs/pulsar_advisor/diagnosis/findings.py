"""`doctor`: whether a cluster is ready for a capture, and if not, what is wrong and how to fix it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from pulsar_advisor.capture.surfaces import oldest_release, prevailing_load_manager
from pulsar_advisor.diagnosis.examination import Examination, Lack
from pulsar_advisor.documents.diagnosis import Diagnosis, Row, Status
from pulsar_advisor.model.configuration.class_names import load_manager_kind, simple_name
from pulsar_advisor.model.configuration.defaults import listed_release
from pulsar_advisor.model.configuration.releases import INTERNAL_LISTENER_SINCE, release_number
from pulsar_advisor.model.configuration.resolved_settings import is_release_default, resolve_settings
from pulsar_advisor.model.configuration.settings import OF_THE_HOST
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.proposals.configured import configured_strategies
from pulsar_advisor.shedding.registry import SHEDDERS

LARGEST_CLOCK_DIFFERENCE_S: Final = 5.0

_SURFACES: Final[Mapping[str, str]] = {
    "brokers": "the cluster",
    "leader": "whose settings decide",
    "settings": "the balancer's own strategies and limits",
    "owned_bundles": "who owns what",
    "load_reports": "usage and bundles' rates",
    "broker_metrics": "usage",
    "topic_stats": "loaded topics and their rates",
    "isolation_policies": "which brokers may own what",
    "failure_domains": "how anti-affinity groups are spread",
    "tenants": "the namespaces",
    "namespaces": "bundles' boundaries and policies",
    "topic_names": "topics to split by, loaded or not",
    "partitioned_topics": "partitions that were never loaded",
    "segments": "the segments of scalable topics",
    "metadata_store": "whether the metadata store is being migrated",
}
"""Surfaces by their names in a snapshot, and what each gives."""
_CLIENT: Final = "a client of the namespaces, their tenants' administrator or a super-user"
_ROLES: Final[Mapping[str, str]] = {
    "namespaces": "the tenants' administrator or a super-user",
    "topic_names": _CLIENT,
    "partitioned_topics": _CLIENT,
    "segments": _CLIENT,
}
"""Who may read a surface; the others, only a super-user. Stock Pulsar has no read-only role."""
_REQUIRED_OF_CLUSTER: Final = frozenset({"settings", "brokers", "leader", "tenants", "namespaces"})
"""Surfaces without which a capture produces no snapshot that passes validation, or none at all."""
_SWITCHES: Final[Mapping[str, str]] = {
    "loadBalancerEnabled": "brokers write no reports to the metadata store, and Pulsar balances nothing",
    "loadBalancerSheddingEnabled": "Pulsar doesn't unload on its own",
    "loadBalancerAutoBundleSplitEnabled": "Pulsar doesn't split on its own",
}
_CRC32_ASSIGNMENT: Final = "ConsistentHashingTopicBundleAssigner"


def diagnose(found: Examination, *others: Row) -> Diagnosis:
    """Judge an examination's results; `others` are further findings, such as that of `writable`."""
    rows: list[Row] = [*_admin_urls(found)]
    answered = found.is_answered
    if answered:
        rows += [row for check in _CHECKS for row in check(found)]
    elif not found.admin_urls:
        rows += _store_alone(found)
        answered = bool(found.brokers)
    elif found.store is not None:
        rows += _store(found)
    rows += others
    lacks = [lack for lack in found.admin_urls.values() if isinstance(lack, Lack)]
    return Diagnosis(
        cluster_name=found.cluster_name,
        fit=all(row.status != "problem" for row in rows),
        reachable=answered or any(lack.status is not None for lack in lacks),
        rows=tuple(rows),
    )


def writable(root: str, why_not: str | None) -> Row:
    """Whether a snapshot could be written under a root."""
    if why_not is not None:
        return Row("root", "problem", why_not, "choose a folder that this user can write to")
    return Row("root", "ok", f"{root} can be written")


def _admin_urls(found: Examination) -> Iterator[Row]:
    for url, release in found.admin_urls.items():
        if isinstance(release, str):
            yield Row("admin_url", "ok", f"{url} responds: Pulsar {release}")
        elif release.status == 401:
            # On this path any valid credential suffices, so a 401 concerns authentication, not the role.
            yield Row("credentials", "problem", release.reason, "give the token (or password) of a super-user")
        else:
            others_answer = found.is_answered
            todo = (
                "remove it from the admin URLs, or start that broker"
                if others_answer
                else f"give the URL of another broker, or of several{_others(found)}"
            )
            yield Row("admin_url", "warning" if others_answer else "problem", release.reason, todo)


def _others(found: Examination) -> str:
    """The brokers that the metadata store lists besides those of the admin URLs, as far as these have the same port."""
    if found.store is None:
        return ""
    given = {url.rpartition("/")[2] for url in found.admin_urls}
    others = [broker for broker in found.store.brokers if broker not in given]
    return f", with --admin-url: {found.store.kind} lists {some_of(others)}" if others else ""


def _permissions(found: Examination) -> Iterator[Row]:
    """What the credentials permit. Reading a broker's settings takes a super-user, and so does moving load."""
    if found.checks_permissions is False:
        sentence = "the brokers check no permissions (authorizationEnabled=false): whoever reaches them may do anything"
        yield Row("permissions", "ok", sentence)
    elif found.checks_permissions:
        yield Row("permissions", "ok", "the credentials are a super-user's: the brokers permit every verb")
    elif "settings" in found.lacks and _forbids(found.lacks["settings"]):
        sentence = "the credentials aren't a super-user's: capture, brokers, apply, undo and verify will be refused"
        todo = "use the credentials of a super-user, or capture from ZooKeeper alone, without --admin-url"
        yield Row("permissions", "problem", sentence, todo)


def _cluster(found: Examination) -> Iterator[Row]:
    if not found.brokers:
        if "brokers" not in found.lacks:
            sentence = f"cluster '{found.cluster_name}' has no active broker"
            yield Row("cluster", "problem", sentence, "try again once a broker is registered")
        return
    yield Row("cluster", "ok", f"cluster '{found.cluster_name}' with {count(len(found.brokers), 'broker')}")
    if "leader" not in found.lacks:
        if found.leader is None:
            yield Row("leader", "warning", "there is no leader at the moment", "try again once one is elected")
        else:
            yield Row("leader", "ok", f"the leader is {found.leader}")


def _surfaces(found: Examination) -> Iterator[Row]:
    for surface in _SURFACES:
        if surface in found.lacks:
            yield _lacking(surface, "problem" if surface in _REQUIRED_OF_CLUSTER else "warning", found.lacks[surface])
        elif surface in found.asked and surface not in ("settings", "brokers"):  # reported per broker
            yield _readable(surface)
    if "namespaces" not in found.asked | found.lacks.keys() and "tenants" not in found.lacks:
        yield Row(
            "surface.namespaces",
            "problem",
            "there is no tenant, so no namespace",
            "check that this is the right cluster",
        )


def _brokers(found: Examination) -> Iterator[Row]:
    silent = {broker: answers.silence for broker, answers in found.answers.items() if answers.silence is not None}
    for broker, lack in silent.items():
        status: Status = "problem" if len(silent) == len(found.answers) else "warning"
        todo = "run where every broker's web address can be reached; start the broker if it is down"
        yield Row("broker", status, f"{broker} does not respond at its own address: {lack.reason}", todo)
    answering = [broker for broker in found.answers if broker not in silent]
    extensible = [broker for broker in answering if found.load_managers.get(broker) == "extensible"]
    for surface, asked in (
        ("owned_bundles", answering),
        ("settings", answering),
        ("brokers", answering),
        ("load_reports", [broker for broker in answering if broker not in extensible]),
        ("broker_metrics", extensible),
        ("topic_stats", [broker for broker in answering if broker == found.topics_asked_of]),
    ):
        lacks = [found.answers[broker].lacks[surface] for broker in asked if surface in found.answers[broker].lacks]
        for lack in lacks:
            yield _lacking(surface, "problem" if len(lacks) == len(asked) else "warning", lack)
        if len(lacks) < len(asked):
            yield _readable(surface, f" at {len(asked) - len(lacks)} of {count(len(asked), 'broker')} asked")


def _readable(surface: str, where: str = "") -> Row:
    sentence = f"{surface.replace('_', ' ')} can be read{where}: {_SURFACES[surface]} (needs {_role(surface)})"
    return Row(f"surface.{surface}", "ok", sentence)


def _lacking(surface: str, status: Status, lack: Lack) -> Row:
    todo = f"use the credentials of {_role(surface)}" if _forbids(lack) else "check the broker's log, then try again"
    return Row(f"surface.{surface}", status, lack.reason, todo)


def _role(surface: str) -> str:
    return _ROLES.get(surface, "a super-user")


def _forbids(lack: Lack) -> bool:
    return lack.status in (401, 403)


def _clocks(found: Examination) -> Iterator[Row]:
    clocks = {broker: answers.clock for broker, answers in found.answers.items() if answers.clock is not None}
    if not clocks:
        if any(answers.silence is None for answers in found.answers.values()):
            todo = "compare the clocks manually: ages of reports depend on them"
            yield Row("clock", "warning", "no broker's response has a date, so clocks can't be compared", todo)
        return
    limit_s = LARGEST_CLOCK_DIFFERENCE_S
    off_s = {broker: clock.certain_s for broker, clock in clocks.items() if abs(clock.certain_s) > limit_s}
    spread_s = max(clock.at_least_s for clock in clocks.values()) - min(clock.at_most_s for clock in clocks.values())
    if not off_s and spread_s <= limit_s:
        sentence = f"the clocks of {count(len(clocks), 'broker')} and this machine agree within {limit_s:g} s"
        yield Row("clock", "ok", sentence)
    elif not off_s:
        todo = "set the brokers' clocks: ages of their reports depend on them"
        yield Row("clock", "warning", f"the brokers' clocks differ by at least {spread_s:.0f} s", todo)
    elif len(off_s) == len(clocks) and spread_s <= limit_s:
        sentence = f"this machine's clock is {_offset(-min(off_s.values(), key=abs))} all brokers'"
        yield Row("clock", "warning", sentence, "set this machine's clock: ages of reports and approvals depend on it")
    else:
        for broker, seconds in off_s.items():
            sentence = f"the clock of {broker} is {_offset(seconds)} this machine's"
            yield Row("clock", "warning", sentence, "set that broker's clock: ages of its reports depend on it")


def _offset(seconds: float) -> str:
    return f"at least {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"


def _release(found: Examination) -> Iterator[Row]:
    by_release, deciding = _brokers_by(found.releases), _deciding_release(found)
    if deciding is None:
        return
    if len(by_release) > 1:
        sentence = f"brokers run different releases: {_spelt(by_release)}; the rules of {deciding} are applied"
        yield Row("release", "warning", sentence, "recommend again after the upgrade")
        yield from _listeners(found)
    else:
        yield Row("release", "ok", f"every broker runs Pulsar {deciding}")
    try:
        resolve_settings(deciding)
    except DataNotFit as error:
        yield Row("release.known", "warning", str(error), "a capture works; upgrade to get recommendations")
        return
    try:
        settings = resolve_settings(deciding, found.leading_settings, found.dynamic)
    except DataNotFit as error:
        yield Row("settings", "problem", str(error), "check that setting of the broker")
        return
    for note in (*settings.caveats, *settings.notes):
        yield Row("settings", "warning", note, "keep this in mind when reading recommendations")


def _deciding_release(found: Examination) -> str | None:
    return found.releases.get(found.leader or "", oldest_release(found.releases.values()))


def _load_manager(found: Examination) -> Iterator[Row]:
    by_manager = _brokers_by(found.load_managers)
    unknown = [
        broker for broker, answers in found.answers.items() if answers.settings and broker not in found.load_managers
    ]
    if unknown:
        names = {found.answers[broker].settings.get("loadManagerClassName", "unnamed") for broker in unknown}
        sentence = f"{some_of(unknown)}: load manager {', '.join(sorted(names))} is not modular, simple or extensible"
        status: Status = "warning" if by_manager else "problem"
        yield Row("load_manager", status, sentence, "no advice is possible for such brokers")
    if len(by_manager) > 1:
        sentence = f"brokers run different load managers: {_spelt(by_manager)}"
        todo = "finish or revert the migration (`loadManagerClassName` on every broker)"
        yield Row("load_manager", "problem", sentence, todo)
    elif by_manager:
        yield Row("load_manager", "ok", f"the load manager is {next(iter(by_manager))}")
    settings = {broker: found.answers[broker].settings for broker in by_manager.get("simple", ())}
    named = {broker: one[key] for broker, one in settings.items() if (key := "loadManagerClassName") in one}
    others = {broker: name for broker, name in named.items() if load_manager_kind(None, name) != "simple"}
    if others:
        why = "they can't load that class, or a strategy's"
        sentence = f"brokers run the Simple manager in place of {_spelt(_brokers_by(others))}: {why}"
        todo = "correct the names of classes in their configuration, and restart them"
        yield Row("load_manager", "warning", sentence, todo)


def _listeners(found: Examination) -> Iterator[Row]:
    """Whether upgraded brokers can look up the topics of the others."""
    known = {broker: release_number(release) >= INTERNAL_LISTENER_SINCE for broker, release in found.releases.items()}
    asked_for = {found.answers[broker].internal_listener for broker, is_later in known.items() if is_later}
    older = {broker: found.answers[broker] for broker, is_later in known.items() if not is_later}
    for listener in sorted(asked_for - {""}):
        lacking = [broker for broker, one in older.items() if one.settings and listener not in one.listeners]
        if lacking:
            sentence = (
                f"{some_of(lacking)}: no advertised listener {listener}, by which upgraded brokers look topics up, so "
                "topics that move to upgraded ones may stay closed"
            )
            yield Row("release", "warning", sentence, "upgrade the rest soon, or add the listener that `upgrade` names")


def _settings(found: Examination) -> Iterator[Row]:
    known = {broker: answers.settings for broker, answers in found.answers.items() if answers.settings}
    differing = False
    compared = {key for settings in known.values() for key in settings} - {"loadManagerClassName", *OF_THE_HOST}
    for key in sorted(compared):
        # If a broker lacks a key, its release doesn't have it.
        by_value = _brokers_by({broker: settings[key] for broker, settings in known.items() if key in settings})
        if len(by_value) > 1:
            differing = True
            todo = "set the same value on every broker, and restart those that differ"
            if all(is_release_default(key, found.releases.get(broker), settings) for broker, settings in known.items()):
                todo = "finish the upgrade: each has its release's default"
            yield Row("settings.agree", "warning", f"brokers disagree on {key}: {_spelt(by_value)}", todo)
    if len(known) > 1 and not differing:
        yield Row("settings.agree", "ok", f"the load-balancing settings of {len(known):,} brokers agree")


def _switches(found: Examination) -> Iterator[Row]:
    for key, consequence in _SWITCHES.items():
        if found.leading_settings.get(key) == "false":
            todo = "nothing, if intended; plans can still be carried out"
            yield Row("switch", "warning", f"{key} is off: {consequence}", todo)


def _strategies(found: Examination) -> Iterator[Row]:
    manager = prevailing_load_manager(found.load_managers, found.leader)
    if manager is None:
        return
    keys = ("loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy")
    shedder, placement = (found.leading_settings.get(key, "") for key in keys)
    release = release_number(listed_release(_deciding_release(found) or ""))
    own = configured_strategies(manager, shedder, placement, release)
    for key, class_name, name, known in zip(keys, (shedder, placement), own, (SHEDDERS, PLACEMENTS), strict=True):
        if not class_name:
            continue
        used = next((strategy for strategy in known if strategy.name == name), None)
        if used is None:
            sentence = f"{key} is {class_name}, which isn't modelled: what Pulsar itself would do is unknown"
            yield Row("strategy", "warning", sentence, "compare with the strategies that `recommend` offers")
        # Extensible brokers replace a default of Modular ones, which is no mistake.
        elif manager == "modular" and class_name != used.java_class:
            sentence = f"{key} is {class_name}, which brokers can't use: {used.name} takes its place"
            yield Row("strategy", "warning", sentence, f"set {used.java_class}, or the class that was meant")


_GIVE_THE_STORE: Final = "give --metadata-store with the brokers' metadataStoreUrl, chroot or namespace included"


def _store(found: Examination) -> Iterator[Row]:
    extensible = prevailing_load_manager(found.load_managers, found.leader) == "extensible"
    answers = found.store
    of_brokers = sorted({broker.store_scheme for broker in found.answers.values() if broker.store_scheme})
    apart = sorted({one.configuration_scheme for one in found.answers.values() if one.configuration_scheme})
    if extensible:
        sentence = "the Extensible load manager has no load reports and no averages"
        yield Row(
            "computable", "warning", sentence, "nothing: usage and rates come from the brokers' metrics and topics"
        )
    if "etcd" in of_brokers + apart:
        sentence = "the brokers keep their metadata in etcd, which Pulsar 5 no longer has, and which can't be read here"
        yield Row("metadata_store", "warning", sentence, "migrate to ZooKeeper or Oxia before an upgrade")
    if apart:
        sentence = f"the brokers keep tenants and policies in another store ({', '.join(apart)}:), and serve them"
        yield Row("configuration_store", "ok", f"{sentence}; without an admin URL, give --configuration-metadata-store")
    migration, kind_read = found.migration, None if answers is None else answers.kind
    if migration is not None and migration.is_under_way:
        sentence = f"the metadata store is being migrated ({plain(migration.phase)}): Pulsar defers balancing"
        yield Row("metadata_store", "warning", sentence, "apply nothing until it ends: it would be refused")
    if migration is not None and migration.phase == "COMPLETED" and kind_read == "ZooKeeper":
        sentence = "the metadata was migrated to another store: what ZooKeeper has is outdated"
        yield Row("metadata_store", "problem", sentence, _GIVE_THE_STORE)
    if migration is not None and migration.has_half_a_copy and kind_read == "Oxia":
        sentence = f"the cluster still uses the store it is migrating from ({plain(migration.phase)}), not Oxia"
        yield Row("metadata_store", "problem", sentence, _GIVE_THE_STORE)
    if answers is None:
        kept = f" (the brokers use {', '.join(of_brokers)}:)" if of_brokers else ""
        sentence = f"no metadata store was given{kept}: no node versions, no names of transaction-internal topics"
        if not extensible:
            sentence += ", no view `published`, and averages start with one sample"
        yield Row("zookeeper", "warning", sentence, _GIVE_THE_STORE)
        return
    kind, row = answers.kind, answers.kind.lower()
    if answers.lack is not None:
        yield Row(row, "problem", answers.lack, _GIVE_THE_STORE)
    elif found.brokers and not set(answers.brokers) & set(found.brokers):
        sentence = f"{kind} lists none of the brokers: it belongs to another cluster, with {some_of(answers.brokers)}"
        yield Row(row, "problem", sentence, "give the metadata store of this cluster")
    else:
        gives = "node versions, loads of segments, transaction-internal topics"
        if not extensible:
            gives = f"the view `published`, the leader's averages, {gives}"
        yield Row(row, "ok", f"{kind} can be read and lists {count(len(answers.brokers), 'broker')}: {gives}")
        if found.brokers and set(answers.brokers) != set(found.brokers):
            differing = set(answers.brokers) ^ set(found.brokers)
            sentence = f"{kind} and the admin API differ on {some_of(differing)}"
            yield Row(f"{row}.brokers", "warning", sentence, "try again when no broker is starting or stopping")
        if not answers.has_bundle_data and not extensible:
            sentence = "the leader has written no averages of bundles yet: they start with one sample"
            yield Row("computable", "warning", sentence, "wait for `loadBalancerResourceQuotaUpdateIntervalMinutes`")


def _system_topics(found: Examination) -> Iterator[Row]:
    answer = found.system_topics
    if answer is not None and answer.lack is not None:
        todo = "give --service-url with the brokers' binary address, and a role that may consume in pulsar/system"
        yield Row("system_topics", "problem", answer.lack, todo)
    elif answer is not None:
        yield Row("system_topics", "ok", "what Extensible brokers publish to their leader can be read")
    elif prevailing_load_manager(found.load_managers, found.leader) == "extensible":
        sentence = "no service URL was given: no view `published`, and no states of the ownership channel"
        yield Row("system_topics", "warning", sentence, "give --service-url with the brokers' binary address")


def _store_alone(found: Examination) -> Iterator[Row]:
    answers = found.store
    assert answers is not None
    if answers.lack is not None:
        yield Row(answers.kind.lower(), "problem", answers.lack, _GIVE_THE_STORE)
        return
    yield from _cluster(found)
    sentence = f"{answers.kind} can be read and lists {count(len(answers.brokers), 'broker')}"
    yield Row(answers.kind.lower(), "ok", sentence)
    sentence = (
        "no admin URL was given: no settings of the brokers, no fresh load, no loaded topics; recommendations start "
        f"from the load reports in {answers.kind}, up to 15 minutes old (Extensible brokers write none); no splits by "
        "load; whether the store is being migrated, or was, is unknown"
    )
    yield Row("computable", "warning", sentence, "give --admin-url; `apply` requires one, and reads again")
    if not answers.has_tenants:
        sentence = f"{answers.kind} has no tenants: the cluster's configuration is kept in another store"
        todo = "give --configuration-metadata-store with the brokers' configurationMetadataStoreUrl"
        yield Row("configuration_store", "problem", sentence, todo)


def _topic_assignment(found: Examination) -> Iterator[Row]:
    class_name = found.leading_settings.get("topicBundleAssignmentStrategy", "")
    if class_name and simple_name(class_name) != _CRC32_ASSIGNMENT:
        sentence = (
            f"topicBundleAssignmentStrategy is {class_name}: the bundle of a topic can't be computed from its hash"
        )
        yield Row("computable", "warning", sentence, "expect no splits by topics; unloads are not affected")


_CHECKS: Final[tuple[Callable[[Examination], Iterable[Row]], ...]] = (
    _permissions,
    _cluster,
    _surfaces,
    _brokers,
    _clocks,
    _release,
    _load_manager,
    _settings,
    _strategies,
    _switches,
    _store,
    _system_topics,
    _topic_assignment,
)


def _brokers_by(values: Mapping[str, str]) -> dict[str, list[str]]:
    """Value -> the brokers that have it, the most frequent value first."""
    brokers: defaultdict[str, list[str]] = defaultdict(list)
    for broker, value in sorted(values.items()):
        brokers[value].append(broker)
    return dict(sorted(brokers.items(), key=lambda item: -len(item[1])))


def _spelt(brokers_by_value: Mapping[str, Collection[str]]) -> str:
    return "; ".join(f"{value or '(empty)'} at {some_of(brokers)}" for value, brokers in brokers_by_value.items())
