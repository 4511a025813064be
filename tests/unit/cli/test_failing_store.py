"""Every request to an object store may be refused: the error names what could not be done, and nothing is half done."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from upath import UPath

from pulsar_advisor.cli import exit_code
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.storage import lease
from pulsar_advisor.storage.lease import LEASE

EARLIER = Path(__file__).parents[2] / "data" / "earlier" / "root"
RECORDED = Path(__file__).parents[2] / "data" / "recorded" / "modular-4.0.8.tar"
SNAPSHOT = "20261122T093126Z"

REQUESTS = ("ls", "info", "exists", "isdir", "isfile", "_open", "cat_file", "pipe_file", "rm_file", "rm", "rmdir")
REQUESTS += ("mkdir", "makedirs", "mv", "cp_file", "created", "modified")

SLOW_DOWN = OSError(errno.EBUSY, "Please reduce your request rate.")
"""What s3fs raises for `503 SlowDown` once its own attempts are used up."""
ERRORS = (SLOW_DOWN, *(OSError(number, os.strerror(number)) for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)))
PLACE = ["--root", "memory://root", "--cluster", "live"]


class Store:
    """An object store in memory that counts requests and can refuse one."""

    def __init__(self) -> None:
        self.requests = 0
        self._refused, self._error = 0, SLOW_DOWN
        self._depth = threading.local()

    def wrap(self, request: Callable[..., Any]) -> Callable[..., Any]:
        """A request that may itself be made of others, which don't count."""

        @wraps(request)
        def counted(*arguments: Any, **options: Any) -> Any:
            if getattr(self._depth, "inside", False):
                return request(*arguments, **options)
            self.requests += 1
            if self.requests == self._refused:
                raise OSError(self._error.errno, self._error.strerror)
            self._depth.inside = True
            try:
                return request(*arguments, **options)
            finally:
                self._depth.inside = False

        return counted

    def exit_code(self, arguments: list[str], refused: int = 0, error: OSError = SLOW_DOWN) -> int:
        """Run a command line; the request of this number, from 1, is refused."""
        self.requests, self._refused, self._error = 0, refused, error
        return exit_code(arguments)

    @staticmethod
    def files() -> dict[str, bytes]:
        """All but leases, which may stay where giving one up was refused, and the index, which nothing depends on."""
        files = MemoryFileSystem.store.items()
        return {path: file.getvalue() for path, file in files if LEASE not in path and "/index/" not in path}

    def restore(self, files: dict[str, bytes]) -> None:
        MemoryFileSystem.store.clear()
        MemoryFileSystem.pseudo_dirs[:] = [""]
        self._refused = 0
        for path, content in files.items():
            MemoryFileSystem().pipe_file(path, content)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    made = Store()
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    for name in REQUESTS:
        if hasattr(MemoryFileSystem, name):
            monkeypatch.setattr(MemoryFileSystem, name, made.wrap(getattr(MemoryFileSystem, name)))
    yield made
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def filled(store: Store) -> Store:
    """The root of an earlier commit, in the store."""
    for file in EARLIER.rglob("*"):
        if file.is_file():
            UPath(f"memory://root/{file.relative_to(EARLIER)}").write_bytes(file.read_bytes())
    return store


VERBS: Mapping[str, Sequence[str]] = {
    "import": ("snapshots", "import", str(RECORDED)),
    "list": ("snapshots", "list"),
    "show": ("snapshots", "show"),
    "export": ("snapshots", "export", "{folder}/out.tar", "--snapshot", SNAPSHOT),
    "plans": ("plans", "--ledger", "sqlite:///{folder}/ledger.sqlite"),
    "report": ("report", "--snapshot", SNAPSHOT),
}
SLOW = ("report",)
"""Of these every thirtieth request, and all of them in `make test-full`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "every"),
    [(verb, 30 if verb in SLOW else 1) for verb in VERBS] + [pytest.param("report", 1, marks=pytest.mark.full)],
)
def test_whichever_request_is_refused_the_verb_says_so_and_can_be_repeated(
    verb: str,
    every: int,
    filled: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = [word.format(folder=tmp_path) for word in VERBS[verb]] + PLACE
    open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite").close()
    before = filled.files()
    assert filled.exit_code(arguments) == 0
    requests, undisturbed, answer = filled.requests, filled.files(), capsys.readouterr().out
    for number in range(1, requests + 1, every):
        filled.restore(before)
        (tmp_path / "out.tar").unlink(missing_ok=True)
        error = ERRORS[number % len(ERRORS)]
        code, said = filled.exit_code(arguments, number, error), capsys.readouterr().err
        if code == 0:  # what it asked for can be done without
            assert filled.files() == undisturbed, f"request {number}"
            continue
        assert (code, "unexpected failure" in said) == (1, False), f"request {number}: {said}"
        assert error.strerror in said, f"request {number}: {said}"
        with monkeypatch.context() as later:
            later.setattr(lease, "has_ended", lambda _process: True)  # the process of the failed run
            code, said = filled.exit_code(arguments), capsys.readouterr()
        assert code == 0, f"after request {number}: {said.err}"
        found = filled.files()
        differing = {path for path in found.keys() | undisturbed.keys() if found.get(path) != undisturbed.get(path)}
        assert (differing, said.out) == (set(), answer), f"after request {number}"
    print(f"{verb}: {len(range(1, requests + 1, every))} of {requests} requests refused, once each")
