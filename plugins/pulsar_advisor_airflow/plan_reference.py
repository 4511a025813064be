"""Names one plan file of one snapshot, and its digest: all that tasks pass to each other about a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulsar_advisor.model.errors import Refused, UsageError
from pulsar_advisor.model.plan import digest_of, load_plan
from pulsar_advisor.storage.files import read_file, read_json
from pulsar_advisor.storage.root import Root

if TYPE_CHECKING:
    from pulsar_advisor.model.plan import Plan

PLANS: Final = "plans"


@dataclass(frozen=True)
class PlanReference:
    """A plan by snapshot, file name and digest (`sha256:…`)."""

    snapshot: str
    file: str
    digest: str

    def load(self, root: Root) -> Plan:
        """The plan itself. Raises `Refused` if the file holds another one."""
        plan = load_plan(read_file(root.folder(PLANS, self.snapshot) / self.file, "recommend"))
        if digest_of(plan) != self.digest:
            raise Refused(f"{self.file} of snapshot {self.snapshot} is plan {digest_of(plan)}, not {self.digest}")
        return plan


def find_plan(root: Root, digest: str) -> PlanReference:
    """Where the plan of this digest lies; its file name carries the first twelve digits."""
    ending = f"--{digest.removeprefix('sha256:')[:12]}.json"
    for snapshot in root.newest_first():
        folder = root.folder(PLANS, snapshot)
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.name.endswith(ending) and digest_of(load_plan(read_file(file, "recommend"))) == digest:
                return PlanReference(snapshot, file.name, digest)
    raise UsageError(f"there is no plan {digest} of cluster '{root.cluster}' under {root.path}: run `recommend`")


def advised(root: Root, snapshot: str) -> tuple[PlanReference | None, str]:
    """The plan that `recommend` advises, or the only one it made; None and the reason where there is nothing to do."""
    from pulsar_advisor.storage.plans import RECOMMENDATION, RECOMMENDATION_SCHEMA

    path = root.folder(PLANS, snapshot) / RECOMMENDATION
    document = read_json(path, "recommend", [RECOMMENDATION_SCHEMA])
    advice, combinations = document["advice"], document["combinations"]
    if advice["plan"]:
        return PlanReference(snapshot, advice["plan"], advice["digest"]), advice["sentence"]
    if len(combinations) == 1 and combinations[0]["steps"]:
        return PlanReference(snapshot, combinations[0]["plan"], combinations[0]["digest"]), advice["sentence"]
    return None, advice["sentence"]
