"""The folders of plans: plan files, written once and read with their digest checked, and `recommend`'s result file.

A plan is named by the path of its file, or by the first digits of its digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from upath import UPath

from pulsar_advisor.model.errors import Refused, StorageError, UsageError
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import Sealed, digest_of, file_name, load_plan, seal, sealed_before
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.storage.files import read_file, write_file
from pulsar_advisor.storage.results import read_document
from pulsar_advisor.storage.root import PLANS, Root, Snapshot

if TYPE_CHECKING:
    from pulsar_advisor.documents.recommendation import Recommendation

_DIGITS_IN_FILE_NAME: Final = 12
_PLAN_FILE: Final = re.compile(rf".+--[0-9a-f]{{{_DIGITS_IN_FILE_NAME}}}\.json")
_DIGEST: Final = re.compile(r"(sha256:)?[0-9a-f]{1,64}")


class PlanNotFound(UsageError):
    """No plan file of the cluster has a digest that begins with the given digits."""


@dataclass(frozen=True)
class PlanReference:
    """A plan by snapshot, file name and digest (`sha256:…`)."""

    snapshot: str
    file: str
    digest: str

    def load(self, root: Root) -> Plan:
        """The plan itself. Raises `Refused` if the file holds a different one, or one of another cluster."""
        plan = read_plan(str(self._path(root)))
        if (found := digest_of(plan)) != self.digest:
            raise Refused(f"{self.file} of snapshot {self.snapshot} is plan {found}, not {self.digest}")
        # Approvers for this cluster may lack permission for the plan's own, where the ledger would show the approval.
        if (of := (plan.cluster, plan.snapshot)) != (root.cluster, self.snapshot):
            raise Refused(
                f"{found} is a plan for cluster {of[0]!r}, snapshot {of[1]!r}, but is in the folder of another"
            )
        return plan

    def sealed(self, root: Root) -> Sealed:
        """The plan as it was written. Raises `Refused` if the file holds a different one."""
        return sealed_before(read_file(self._path(root), "recommend"), self.digest)

    def _path(self, root: Root) -> UPath:
        """Raises `Refused` for a name that no plan file has, such as one that leads out of the folder."""
        if not _PLAN_FILE.fullmatch(self.file) or "/" in self.file:
            raise Refused(f"{self.file!r} is not the name of a plan's file")
        return root.snapshot(self.snapshot).folder(PLANS) / self.file


def write_plan(root: Root, plan: Plan) -> PlanReference:
    """Write a plan next to the others of its snapshot; the name of its file holds its digest.

    An existing plan is left as it is. Raises `StorageError` if a file with its name has other content.
    """
    sealed = seal(plan)
    written = PlanReference(plan.snapshot, file_name(plan, sealed.digest), sealed.digest)
    path = root.snapshot(plan.snapshot).folder(PLANS) / written.file
    if not path.exists():
        write_file(path, sealed.content)
    elif read_file(path, "recommend") != sealed.content:
        raise StorageError(f"{path} doesn't match the digest in its name: it was changed; remove it")
    return written


def read_plan(path: str) -> Plan:
    """The plan in a file (path or URL). Raises `UsageError`, `StorageError` or, for a changed plan, `Refused`."""
    content = read_file(UPath(path), "recommend")
    try:
        return load_plan(content)
    except (StorageError, Refused) as error:
        raise type(error)(f"{path}: {error}") from error


def plan_files(root: Root) -> Iterator[UPath]:
    """The plan files of a cluster, newest snapshot first, sorted by name within each."""
    files = [path for path in root.of_cluster(PLANS).glob("snapshot=*/*.json") if _PLAN_FILE.fullmatch(path.name)]
    yield from sorted(sorted(files, key=lambda path: path.name), key=lambda path: path.parent.name, reverse=True)


def open_plan(root: Root, name: str) -> Plan:
    """The plan with this path, URL, or digest prefix.

    Hexadecimal digits, with or without `sha256:`, are a digest; anything else is a path. Raises `UsageError`, with the
    candidates, unless the digits identify exactly one plan of the cluster; for a folder; otherwise as `read_plan`.
    """
    if _DIGEST.fullmatch(name) is not None:
        return find_plan(root, name).load(root)
    path = UPath(name)
    if path.is_dir() or not path.exists():
        why = "is a folder" if path.is_dir() and name else "does not exist"
        raise UsageError(
            f"{name or repr(name)} {why}, and no digest begins with it (0 to 9, a to f): {reader().see_plans}"
        )
    return read_plan(name)


def find_plan(root: Root, digits: str) -> PlanReference:
    """The plan whose digest begins with these digits. Raises `PlanNotFound`, or `UsageError` for more than one."""
    wanted = digits.removeprefix("sha256:")
    files = (path for path in plan_files(root) if _digits(path.name).startswith(wanted[:_DIGITS_IN_FILE_NAME]))
    alike = list(_with_digest(f"sha256:{wanted}", files))
    if not alike:
        raise PlanNotFound(
            f"no plan of cluster '{root.cluster}' under {root.path} has a digest that begins with {wanted}: "
            f"{reader().see_plans}"
        )
    if len(alike) > 1:
        raise UsageError(
            f"{len(alike)} plans have a digest that begins with {wanted}: give more digits of "
            f"{some_of([_digits(plan.file) for plan in alike])}"
        )
    (found,) = alike
    return found


def _with_digest(prefix: str, files: Iterable[UPath]) -> Iterator[PlanReference]:
    """The plans in their own files whose digest begins so.

    Neither the name of a file nor its folder proves anything: whoever can write the root could have another plan
    approved in one's place, or leave copies so that none is found.
    """
    for path in files:
        plan = read_plan(str(path))
        digest = digest_of(plan)
        if digest.startswith(prefix) and path.parent.name == f"snapshot={plan.snapshot}":
            yield PlanReference(plan.snapshot, path.name, digest)


def read_recommendation(snapshot: Snapshot) -> Recommendation:
    """The last result of `recommend` for a snapshot. Raises as `read_document`."""
    from pulsar_advisor.documents.recommendation import Recommendation  # loads all of the planning code

    return read_document(snapshot.result_file("recommend"), Recommendation)


def advised_plan(snapshot: Snapshot) -> tuple[PlanReference | None, str]:
    """The plan that `recommend` advises, or None, and the advice."""
    advice = read_recommendation(snapshot).advice
    found = PlanReference(snapshot.id, advice.plan, advice.digest) if advice.plan and advice.digest else None
    return found, advice.sentence


def newest_recommendation(root: Root) -> Recommendation | None:
    """The last result of `recommend` for the newest snapshot that has one; None without any."""
    recommended_on = (snapshot for snapshot in root.newest_first() if snapshot.is_written("recommend"))
    newest = next(recommended_on, None)
    return None if newest is None else read_recommendation(newest)


def _digits(file: str) -> str:
    """The digits in the name of a plan's file."""
    return file.removesuffix(".json").rpartition("--")[2]
