"""Heads kept elsewhere, and the three attacks on a ledger that only they show."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from upath import UPath

from pulsar_advisor.admin.webhook import NotDelivered, Webhook
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.execution.ledger.heads import keep, keepers_of, kept
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import UsageError
from unit.execution.actors import ALICE, BOB
from unit.execution.doubles import make_plan, unload_step

PLAN, OTHER = make_plan([unload_step()]), make_plan([unload_step()], seed=1)


@pytest.mark.parametrize(
    "place",
    ["{tmp}/heads", "file://{tmp}/heads", "memory://{name}/heads"],
    ids=["folder", "URL of a folder", "object store"],
)
def test_every_head_is_an_object_of_its_own_that_an_audit_finds(ledger: Ledger, tmp_path: Path, place: str) -> None:
    keepers = keepers_of(place.format(tmp=tmp_path, name=uuid4().hex))
    assert (kept(keepers), keep(ledger.head(), keepers), kept(keepers)) == ([], [], [])
    heads = []
    for plan in (PLAN, OTHER):
        propose(ledger, plan, ALICE)
        heads.append(ledger.head())
        assert keep(ledger.head(), keepers) == []
    assert kept(keepers) == heads
    result = audit(ledger, kept(keepers))
    assert (result.findings, result.compared) == ((), f"compared with 2 heads kept elsewhere, the newest {heads[-1]}")


def test_an_object_store_whose_package_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(UsageError, match="'s3://bucket/heads' can't keep heads of the ledger: Install s3fs"):
        keepers_of("s3://bucket/heads")


def test_a_head_that_is_kept_is_never_written_again(ledger: Ledger, tmp_path: Path) -> None:
    keepers = keepers_of(str(tmp_path / "heads"))
    propose(ledger, PLAN, ALICE)
    keep(ledger.head(), keepers)
    [file] = (tmp_path / "heads").iterdir()
    assert json.loads(file.read_text())["head"] == str(ledger.head())
    file.write_text("as it was")
    keep(ledger.head(), keepers)
    assert file.read_text() == "as it was"


def test_without_a_kept_head_an_audit_says_what_it_can_not_exclude(ledger: Ledger) -> None:
    compared = audit(ledger).compared
    for attack in ("was wiped", "replaced by an older copy", "rewritten as a whole"):
        assert attack in compared


@pytest.fixture
def places(ledger: Ledger, tmp_path: Path) -> tuple[UPath, Path, Path]:
    """Where heads of a ledger with two events are, its file, and a copy of it after the first one."""
    folder, file, copy = UPath(tmp_path / "heads"), tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"
    propose(ledger, PLAN, ALICE)
    keep(ledger.head(), [folder])
    shutil.copy(file, copy)
    propose(ledger, OTHER, ALICE)
    keep(ledger.head(), [folder])
    ledger.close()
    return folder, file, copy


def findings(places: tuple[UPath, Path, Path], *later: Ledger) -> str:
    folder, file, _ = places
    with closing(open_ledger(f"sqlite:///{file}")) as attacked:
        alone = audit(attacked)
        assert alone.findings == ()  # the ledger itself shows nothing
        return "; ".join(audit(attacked, kept([folder])).findings)


def test_a_ledger_that_was_wiped_is_found(places: tuple[UPath, Path, Path]) -> None:
    places[1].unlink()
    assert findings(places) == "event 1 of a known head is missing: the ledger ends with event 0"


def test_an_older_copy_that_was_put_back_is_found(places: tuple[UPath, Path, Path]) -> None:
    shutil.copy(places[2], places[1])
    assert findings(places) == "event 2 of a known head is missing: the ledger ends with event 1"


def test_a_chain_that_was_written_anew_is_found_although_its_own_heads_were_kept_since(
    places: tuple[UPath, Path, Path],
) -> None:
    places[1].unlink()
    with closing(open_ledger(f"sqlite:///{places[1]}")) as anew:
        for plan in (PLAN, OTHER, PLAN):
            propose(anew, plan, BOB)
        keep(anew.head(), [places[0]])
    assert findings(places) == "event 1 is not that of a known head: the chain was rewritten"


def test_a_head_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert keep(ChainHead(3, "a" * 64), keepers_of("log")) == []
    assert f"head of the ledger: 3:{'a' * 64}" in caplog.text


def test_a_head_goes_to_a_webhook_and_one_that_can_not_be_reached_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []

    def send(self: Webhook, kind: str, data: dict[str, str]) -> None:
        if self.place.endswith("down.example"):
            raise NotDelivered("webhook https://down.example: no answer")
        sent.append((kind, data))

    monkeypatch.setattr(Webhook, "send", send)
    configured = Webhook("https://up.example/x")
    keepers = keepers_of(f"https://down.example/x, webhook, {tmp_path}", configured)
    head = ChainHead(3, "a" * 64)
    assert keep(head, keepers) == [f"the ledger's head {head} was not kept: webhook https://down.example: no answer"]
    assert (sent, kept(keepers)) == ([("ledger.head", {"head": str(head)})], [head])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("webhook", "none is configured"),
        ("https://", "not a webhook address"),
        ("HTTPS://hooks.example/s3cret", "not a webhook address"),
        ("sftp://ops:s3cret@host/heads", "holds a password"),
        ("gopher://x", "'gopher://x' can't keep"),
        ("file://heads", "not an absolute path"),
    ],
)
def test_a_place_that_is_none_is_refused_and_no_webhooks_path_is_shown(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        keepers_of(text)
    assert "s3cret" not in str(refused.value)


def test_a_folder_that_can_not_be_written_is_named() -> None:
    head = ChainHead(3, "a" * 64)
    [failure] = keep(head, keepers_of("/proc/heads"))
    assert failure.startswith(f"the ledger's head {head} was not kept: can't write /proc/heads/head-000000000003-")
