"""An archive comes out as it went in, or not at all."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

import documents
from pulsar_advisor import storage
from pulsar_advisor.capture.raw_files import RawFile, SnapshotFiles
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.storage.archive import export_snapshot, import_snapshot
from pulsar_advisor.storage.files import sha256_hex, write_file
from pulsar_advisor.storage.removal import remove_raw_files
from pulsar_advisor.storage.root import MANIFEST, Root
from written_tables import files_in

SNAPSHOT = "20261121T083000Z"


@pytest.fixture
def captured(root: Root) -> Root:
    """A root with one small snapshot, whose first file takes more of an archive than the next one."""
    folder = root.snapshot(SNAPSHOT).folder("raw")
    files = SnapshotFiles(lambda path, content: write_file(folder / path, content))
    files.extend("tenants", [{"tenant": sha256_hex(f"{number}".encode())} for number in range(1500)])
    files.write_surfaces()
    topics = RawFile()
    topics.extend([{"topic": "t"}])
    files.write("topic_stats/0.jsonl.zst", "topic_stats", "b1:8080", topics.finish())
    write_file(folder / MANIFEST, documents.manifest(snapshot=SNAPSHOT, files=files.listing()).content())
    return root


@pytest.fixture
def target(tmp_path: Path) -> Root:
    return Root(str(tmp_path / "target"), "copy")


@pytest.fixture
def archive(captured: Root, tmp_path: Path) -> Path:
    file = tmp_path / "snapshot.tar"
    export_snapshot(captured.resolve("latest"), file)
    return file


def content_of(root: Root) -> dict[str, bytes]:
    return files_in(Path(str(root.snapshot(SNAPSHOT).folder("raw"))))


def test_a_snapshot_arrives_as_it_left(captured: Root, archive: Path, target: Root) -> None:
    assert import_snapshot(archive, target) == target.snapshot(SNAPSHOT)
    assert target.snapshots() == [SNAPSHOT]
    assert content_of(target) == content_of(captured)


def test_the_same_snapshot_gives_the_same_archive(captured: Root, archive: Path, tmp_path: Path) -> None:
    export_snapshot(captured.snapshot(SNAPSHOT), tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()


def test_taking_the_same_snapshot_in_again_changes_nothing(archive: Path, target: Root) -> None:
    import_snapshot(archive, target)
    before = content_of(target)
    assert import_snapshot(archive, target) == target.snapshot(SNAPSHOT)
    assert content_of(target) == before


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"other")])
def test_taking_the_same_snapshot_in_again_puts_back_what_is_gone_or_damaged(
    archive: Path, target: Root, damage: Callable[[Path], object]
) -> None:
    import_snapshot(archive, target)
    before = content_of(target)
    damage(Path(str(target.snapshot(SNAPSHOT).folder("raw"))) / "topic_stats/0.jsonl.zst")
    assert import_snapshot(archive, target) == target.snapshot(SNAPSHOT)
    assert content_of(target) == before


def test_a_snapshot_whose_raw_files_were_pruned_is_not_exported(captured: Root, tmp_path: Path) -> None:
    remove_raw_files(captured.snapshot(SNAPSHOT))
    with pytest.raises(UsageError, match=r"has no tenants\.jsonl\.zst any more"):
        export_snapshot(captured.snapshot(SNAPSHOT), tmp_path / "snapshot.tar")
    assert not list(tmp_path.glob("*.tar*"))


def test_another_snapshot_of_the_same_second_is_not_overwritten(archive: Path, target: Root) -> None:
    write_file(target.snapshot(SNAPSHOT).folder("raw") / MANIFEST, documents.manifest(snapshot=SNAPSHOT).content())
    before = content_of(target)
    with pytest.raises(UsageError, match="already exists"):
        import_snapshot(archive, target)
    assert content_of(target) == before


def test_what_is_pruned_while_it_is_taken_in_again_is_not_called_taken_in(
    archive: Path, target: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_snapshot(archive, target)
    manifest, there = target.snapshot(SNAPSHOT).folder("raw") / MANIFEST, storage.archive._is_there
    with monkeypatch.context() as meanwhile, pytest.raises(StorageError, match="was being removed meanwhile: import"):
        meanwhile.setattr(storage.archive, "_is_there", lambda *of: manifest.unlink(missing_ok=True) or there(*of))
        import_snapshot(archive, target)
    assert import_snapshot(archive, target) == target.snapshot(SNAPSHOT)


def test_an_existing_file_is_not_overwritten(captured: Root, tmp_path: Path) -> None:
    (tmp_path / "mine.tar").write_text("mine")
    with pytest.raises(UsageError, match="already exists"):
        export_snapshot(captured.snapshot(SNAPSHOT), tmp_path / "mine.tar")


def test_an_archive_is_on_disk_before_its_name_is(
    captured: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, sync = tmp_path / "snapshot.tar", os.fsync
    synced: list[tuple[int, bool]] = []

    def noted(number: int) -> None:
        synced.append((os.fstat(number).st_size, file.exists()))
        sync(number)

    monkeypatch.setattr(os, "fsync", noted)
    export_snapshot(captured.snapshot(SNAPSHOT), file)
    assert synced[0] == (file.stat().st_size, False)


def test_a_link_that_waits_for_the_export_is_not_followed(captured: Root, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("stays")
    (tmp_path / ".snapshot.tar.partial").symlink_to(tmp_path / "precious")
    export_snapshot(captured.snapshot(SNAPSHOT), tmp_path / "snapshot.tar")
    assert (tmp_path / "precious").read_text() == "stays"


def test_a_damaged_snapshot_is_not_exported(captured: Root, tmp_path: Path) -> None:
    (captured.snapshot(SNAPSHOT).folder("raw") / "tenants.jsonl.zst").write_bytes(b"damaged")
    with pytest.raises(StorageError, match=r"tenants\.jsonl\.zst is not what was captured"):
        export_snapshot(captured.snapshot(SNAPSHOT), tmp_path / "snapshot.tar")
    assert not list(tmp_path.glob("*.tar*"))


Members = list[tuple[tarfile.TarInfo, bytes]]


def named(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, len(content)
    return member, content


def rewritten(archive: Path, change: Callable[[Members], Members]) -> None:
    with tarfile.open(archive) as original:
        members = [(member, getattr(original.extractfile(member), "read", bytes)()) for member in original]
    with tarfile.open(archive, "w") as hostile:
        for member, content in change(members):
            hostile.addfile(member, io.BytesIO(content))


def with_manifest(members: Members, change: Callable[[dict[str, Any]], None]) -> Members:
    manifest = json.loads(members[0][1])
    change(manifest)
    return [named(MANIFEST, json.dumps(manifest).encode()), *members[1:]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"snapshot": "99991231T235959Z"}, "but says that it began at"),
        ({"snapshot": "99991231T235959Z", "started_at_ms": 253402300799000}, "is dated in the future"),
        ({"snapshot": "20261332T083000Z"}, "is not a snapshot id"),
        ({"snapshot": "20261121T0830\u0660\u0660Z"}, "is not a snapshot id"),
        ({"snapshot": "20261121T083101Z"}, "but says that it began at"),
        ({"started_at_ms": 10**400}, r"its manifest.json is not as .*started_at_ms: Input should be"),
        ({"started_at_ms": math.inf}, "its manifest.json is not a JSON document"),
        ({"started_at_ms": math.nan}, "its manifest.json is not a JSON document"),
    ],
)
def test_an_archive_can_not_become_the_latest_by_a_name_that_is_not_its_own(
    archive: Path, target: Root, fields: dict[str, Any], message: str
) -> None:
    rewritten(archive, lambda members: with_manifest(members, lambda manifest: manifest.update(fields)))
    with pytest.raises(StorageError, match=message):
        import_snapshot(archive, target)
    assert target.snapshots() == []


def with_content(members: Members, content: bytes, **fields: Any) -> Members:
    """The archive with another first file, to which its manifest fits."""

    def describe(manifest: dict[str, Any]) -> None:
        manifest["files"][0] |= {"bytes": len(content), "sha256": sha256_hex(content), **fields}

    manifest, (member, _), *others = with_manifest(members, describe)
    return [manifest, named(member.name, content), *others]


def frame(*lines: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(b"".join(lines))


def escape(manifest: dict[str, Any]) -> None:
    manifest["files"][0]["path"] = "../../../../escaped.jsonl.zst"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda members: [*members, named("extra.jsonl.zst")], "which its manifest does not list"),
        (lambda members: [*members, named("../../escaped", b"x")], "which its manifest does not list"),
        (lambda members: [*members, named("/etc/cron.d/x", b"x")], "which its manifest does not list"),
        (lambda members: [*members, members[-1]], "which its manifest does not list"),
        (lambda members: with_manifest(members, lambda m: m["files"].append(m["files"][0])), "twice"),
        (
            lambda members: with_manifest(members, lambda m: m["files"][0].update(bytes=1 << 40)),
            "than any file",
        ),
        (
            lambda members: with_content(members, frame(bytes(300 << 20)), rows=0),
            "expands beyond the size of any capture",
        ),
        (lambda members: with_content(members, frame(b"{}\n"), rows=10**18), r"files\.0\.rows"),
        (lambda members: with_content(members, frame(b"{}\n"), rows=-1), r"files\.0\.rows"),
        (
            lambda members: with_content(members, b"\x28\xb5\x2f\xfd\x00\xff" + bytes(64), rows=1),
            "tenants.jsonl.zst is not compressed as",
        ),
        (
            lambda members: with_manifest(members, lambda m: m.update(x=[0] * 4_000_000)),
            "its manifest.json holds more values than any capture's",
        ),
        (
            lambda members: [named(MANIFEST, bytes(65 << 20)), *members[1:]],
            "its manifest.json has 68157440 bytes, more than any capture's",
        ),
        (
            lambda members: with_content(members, frame(b"{}\n") * 2, rows=1),
            "does not have the 1 lines",
        ),
        (lambda members: with_content(members, frame(b"{}\n{}"), rows=1), "does not have the 1 lines"),
        (lambda members: with_content(members, b"plain text", rows=1), "is not compressed as a snapshot's files are"),
        (lambda members: members[:-1], "topic_stats/0.jsonl.zst missing"),
        (lambda members: members[1:], "its first file is not a manifest.json"),
        (lambda members: [], "its first file is not a manifest.json"),
        (lambda members: [named(MANIFEST, b'{"x":' * 100_000), *members[1:]], "manifest.json is not a JSON document"),
        (lambda members: [named(MANIFEST, b"\xff"), *members[1:]], "is not a JSON document"),
        (lambda members: with_manifest(members, escape), "which is not a file of a snapshot"),
        (lambda members: with_manifest(members, lambda m: m.update(snapshot="../../x")), "is not a snapshot id"),
        (lambda members: with_manifest(members, lambda m: m.update(schema="other/1")), "has schema 'other/1'"),
        (lambda members: with_manifest(members, lambda m: m.update(files=7)), "is not as `capture` writes it"),
        (
            lambda members: [members[0], named(members[1][0].name, bytes(len(members[1][1]))), *members[2:]],
            "is not what was captured",
        ),
        (lambda members: [members[0], named(members[1][0].name, b"short"), *members[2:]], "its manifest says"),
    ],
    ids=[
        "file that is not listed",
        "path that leads out",
        "absolute path",
        "file twice",
        "file listed twice",
        "oversize",
        "bomb",
        "absurd number of rows",
        "negative number of rows",
        "window of the decompressor",
        "bomb of values",
        "oversize manifest",
        "hidden second frame",
        "half a line",
        "not compressed",
        "file lacking",
        "no manifest",
        "empty",
        "nested manifest",
        "manifest of no text",
        "listed path that leads out",
        "snapshot id that leads out",
        "other schema",
        "malformed manifest",
        "other content",
        "other size",
    ],
)
def test_a_hostile_archive_is_refused_and_leaves_nothing(
    archive: Path, target: Root, tmp_path: Path, change: Callable[[Members], Members], message: str
) -> None:
    rewritten(archive, change)
    before = files_in(tmp_path)
    with pytest.raises(StorageError, match=message):
        import_snapshot(archive, target)
    assert files_in(tmp_path) == before
    assert not target.path.exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_a_listed_name_that_is_no_regular_file_is_refused(archive: Path, target: Root, kind: bytes) -> None:
    def link_to_nothing(members: Members) -> Members:
        def empty(manifest: dict[str, Any]) -> None:
            manifest["files"][0]["bytes"] = 0

        manifest, (member, _), *others = with_manifest(members, empty)
        return [manifest, named(member.name, kind=kind, link="/etc/passwd"), *others]

    rewritten(archive, link_to_nothing)
    with pytest.raises(StorageError, match="is not a regular file"):
        import_snapshot(archive, target)
    assert target.snapshots() == []


def header(name: str, size: int | None = None, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header in which the size may be any that the format can express."""
    member = tarfile.TarInfo(name)
    member.type = kind
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    if size is not None:
        block[124:136] = (size % 256**12 | (1 << 95 if size >= 0 else 0)).to_bytes(12, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def extended(**fields: str) -> bytes:
    """A pax header with these fields, before a manifest."""
    member = tarfile.TarInfo(MANIFEST)
    member.pax_headers = {name.replace("_", "."): value for name, value in fields.items()}
    return member.tobuf(tarfile.PAX_FORMAT)


EXTENSION = "is not a regular file: refused"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header(MANIFEST, -1000), "'manifest.json' should have -1000 bytes"),
        (header(MANIFEST, 2**80), "'manifest.json' should have 1e\\+24 bytes"),
        (header(MANIFEST, 2**33), "'manifest.json' should have 8589934592 bytes, but 0 follow"),
        (header("x", 2**62, tarfile.XHDTYPE), EXTENSION),
        (header("x", 2**62, tarfile.GNUTYPE_LONGNAME), EXTENSION),
        (header("x", -5, tarfile.GNUTYPE_LONGLINK), EXTENSION),
        (header(MANIFEST, 0, tarfile.GNUTYPE_SPARSE), "'manifest.json' is not a regular file"),
        (header(MANIFEST, 0, tarfile.CONTTYPE), "'manifest.json' is not a regular file"),
        (extended(GNU_sparse_map="a,b"), EXTENSION),
        (extended(GNU_sparse_size="x", GNU_sparse_offset="1" * 5000), EXTENSION),
        (extended(size="-5"), EXTENSION),
        (extended(size="9" * 400), EXTENSION),
        (gzip.compress(header(MANIFEST, 0)), "is not a snapshot archive, or is damaged"),
        (b"PK\x03\x04" + bytes(4096), "is not a snapshot archive, or is damaged"),
        (bytes(1 << 20), "its first file is not a manifest.json"),
    ],
    ids=[
        "negative size",
        "size beyond any file",
        "more than there is",
        "pax header of 4 EiB",
        "long name of 4 EiB",
        "long name of negative size",
        "sparse file",
        "contiguous file",
        "sparse map of letters",
        "sparse size of letters",
        "negative pax size",
        "pax size of 400 digits",
        "gzip",
        "zip",
        "zeros",
    ],
)
def test_no_number_of_an_archive_is_believed(tmp_path: Path, target: Root, content: bytes, message: str) -> None:
    file = tmp_path / "hostile.tar"
    file.write_bytes(content)
    with pytest.raises(StorageError, match=rf"hostile\.tar.*{message}"):
        import_snapshot(file, target)
    assert not target.path.exists()


def test_an_archive_of_holes_takes_no_memory(archive: Path, target: Root) -> None:
    holes = 128 << 20
    rewritten(archive, lambda members: with_content(members, b"", bytes=holes)[:1])
    with tarfile.open(archive) as manifest_only:
        manifest = manifest_only.getmembers()[0]
    end = manifest.offset_data + -(-manifest.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    with archive.open("r+b") as file:
        file.truncate(end)
        file.seek(end)
        file.write(header("tenants.jsonl.zst", holes))
        file.truncate(file.tell() + holes)
    tracemalloc.start()
    try:
        with pytest.raises(StorageError, match=r"tenants\.jsonl\.zst is not what was captured"):
            import_snapshot(archive, target)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cut", [100, 700, 1500])
def test_an_archive_cut_short_is_refused(archive: Path, target: Root, cut: int) -> None:
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(StorageError):
        import_snapshot(archive, target)
    assert target.snapshots() == []


def test_an_archive_that_is_not_there_is_named(target: Root) -> None:
    with pytest.raises(UsageError, match=r"there is no archive /nowhere\.tar"):
        import_snapshot(Path("/nowhere.tar"), target)


def test_a_pipe_is_no_archive_and_nobody_waits_for_it(target: Root, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="it is not a regular file"):
        import_snapshot(tmp_path / "pipe", target)
