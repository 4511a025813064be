"""Removes a snapshot and everything derived from it: the manifest first, so that no snapshot ever exists in part."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from upath import UPath

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.claim import remove_file, remove_folder, require_no_link
from pulsar_advisor.storage.files import read_file
from pulsar_advisor.storage.lease import LEASE, is_held
from pulsar_advisor.storage.root import MANIFEST, PLANS, Root, Snapshot, names_in, snapshots_in
from pulsar_advisor.storage.store_clock import age

_STAGE: Final = re.compile(r"[a-z_]+")
"""The name of a folder of ours. Others, such as `lost+found`, may be closed to us."""


@dataclass(frozen=True)
class PlanFile:
    """A file that may be a plan: its place, the snapshot it lies with, and its content, empty if it can't be read."""

    place: str
    snapshot: str
    content: bytes


def stage_folders(root: Root) -> list[str]:
    """Every folder with this cluster's snapshots, except raw: `validation`, `tables/bundles`, …"""
    found: list[str] = []
    for child in _folders(root.path):
        if child.name != "raw":
            inner = [child.name, *(f"{child.name}/{table.name}" for table in _folders(child))]
            found += (stage for stage in inner if root.of_cluster(stage).is_dir())
    return sorted(found)


def made_of(root: Root, stages: Collection[str]) -> set[str]:
    """Ids of the snapshots for which some of these folders has results."""
    return {snapshot for stage in stages for snapshot in snapshots_in(root.of_cluster(stage))}


def with_plans(root: Root) -> list[str]:
    """Ids of the snapshots that may have plan files."""
    return snapshots_in(root.of_cluster(PLANS))


def new_plan_files(root: Root, snapshots: Iterable[str], known: Collection[str]) -> Iterator[PlanFile]:
    """The files of these snapshots that are named like plans, at places not known yet."""
    for snapshot in snapshots:
        for file in root.snapshot(snapshot).folder(PLANS).glob("*--*.json"):
            if str(file) not in known:
                try:
                    content = read_file(file, "recommend")
                except AdvisorError:
                    content = b""
                yield PlanFile(str(file), snapshot, content)


def is_at_work(snapshot: Snapshot, stages: Iterable[str]) -> bool:
    """Whether a process holds the snapshot's folder of one of these stages, or its lease can't be read."""
    leases = [lease for stage in stages if (lease := snapshot.folder(stage) / LEASE).exists()]
    return any(_is_held(lease) for lease in leases)


def remove_snapshot(snapshot: Snapshot, stages: Iterable[str], *, is_remainder: bool) -> None:
    """Remove a snapshot from the raw folder and those of these stages; remainders of one, only from the latter."""
    folder, made = snapshot.folder("raw"), [snapshot.folder(stage) for stage in stages]
    require_no_link(snapshot.root, folder, *made)
    if not is_remainder:
        if not folder.is_symlink():
            remove_file(folder / MANIFEST)
        remove_folder(folder)
    for one in made:
        remove_folder(one)


def with_raw_files(root: Root) -> set[str]:
    """Ids of the snapshots of which there is more than a manifest; files behind a link don't count.

    From one listing of all files, which object stores answer by the thousand.
    """
    parent = root.of_cluster("raw")
    inside = (path.parts[len(parent.parts) :] for path in parent.rglob("*"))
    return {parts[0].removeprefix("snapshot=") for parts in inside if len(parts) > 1 and parts[1] != MANIFEST}


def remove_raw_files(snapshot: Snapshot) -> None:
    """Remove what a snapshot was normalized from; its manifest stays, so the snapshot exists. Raises `StorageError`."""
    folder = snapshot.folder("raw")
    require_no_link(snapshot.root, folder)
    for child in (folder / name for name in ([] if folder.is_symlink() else names_in(folder))):
        if child.is_dir():
            remove_folder(child)
        elif child.name != MANIFEST:
            remove_file(child)


def _is_held(lease: UPath) -> bool:
    try:
        return is_held(read_file(lease, "prune"), age(lease))
    except AdvisorError:
        return True


def _folders(parent: UPath) -> list[UPath]:
    return [child for name in names_in(parent) if _STAGE.fullmatch(name) and (child := parent / name).is_dir()]
