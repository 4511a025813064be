"""Finds a container engine with Compose, or starts one for as long as the tests run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts import cache_directory

START_LIMIT_S = 60
STOP_LIMIT_S = 60
COMMAND_LIMIT_S = 1800
LOG_TAIL_CHARACTERS = 4000


class NoEngine(Exception):
    """No containers here; the message says what is missing."""


class CommandFailed(Exception):
    """A command of the engine ended with an error; the message has its output."""


@dataclass(frozen=True)
class Engine:
    """A running engine: the client that builds, the command of Compose, and their environment."""

    docker: str
    compose: Sequence[str]
    environment: Mapping[str, str]

    def run(
        self,
        *arguments: str | Path,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        limit_s: float = COMMAND_LIMIT_S,
    ) -> str:
        """What a docker command prints. Raises `CommandFailed`."""
        return self._run([self.docker, *map(str, arguments)], folder, environment or {}, limit_s)

    def run_compose(
        self, *arguments: str, folder: Path, environment: Mapping[str, str], limit_s: float = COMMAND_LIMIT_S
    ) -> str:
        """What a command of Compose prints, run in the folder of its file. Raises `CommandFailed`."""
        return self._run([*self.compose, *arguments], folder, environment, limit_s)

    def has_image(self, name: str) -> bool:
        """Whether an image of this name is here."""
        try:
            self.run("image", "inspect", name)
        except CommandFailed:
            return False
        return True

    def _run(self, command: Sequence[str], folder: Path | None, environment: Mapping[str, str], limit_s: float) -> str:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )
        if done.returncode != 0:
            output = (done.stdout + done.stderr)[-LOG_TAIL_CHARACTERS:]
            raise CommandFailed(f"{' '.join(command)} ended with code {done.returncode}:\n{output}")
        return done.stdout


@contextmanager
def running_engine() -> Iterator[Engine]:
    """The engine that runs here, else one of our own in the user's cache, stopped with the block.

    Raises:
        NoEngine: docker with BuildKit, or Compose, isn't installed, or no engine can be started.
    """
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    docker = _client(environment)
    compose = _compose(environment)
    if _answers(docker, environment):
        yield Engine(docker, compose, environment)
        return
    daemon = shutil.which("dockerd")
    if daemon is None:
        raise NoEngine("no container engine runs here, and dockerd isn't installed (Debian: docker.io)")
    if os.geteuid() != 0:
        raise NoEngine("no container engine runs here, and only root can start one")
    folder = cache_directory() / "engine"
    folder.mkdir(parents=True, exist_ok=True)
    address = f"unix://{folder / 'docker.sock'}"
    environment["DOCKER_HOST"] = address
    log = folder / "dockerd.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(daemon, "--host", address, "--data-root", folder / "data"),
                *("--exec-root", folder / "run", "--pidfile", folder / "docker.pid"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while not _answers(docker, environment):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoEngine(f"dockerd doesn't start here: {log.read_text(errors='replace')[-LOG_TAIL_CHARACTERS:]}")
            time.sleep(0.5)
        yield Engine(docker, compose, environment)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _client(environment: Mapping[str, str]) -> str:
    """The first docker on PATH that can build with secrets."""
    for folder in os.get_exec_path():
        candidate = str(Path(folder, "docker"))
        if shutil.which(candidate) and "--secret" in _output([candidate, "build", "--help"], environment):
            return candidate
    raise NoEngine("docker with BuildKit isn't installed (Debian: docker.io)")


def _compose(environment: Mapping[str, str]) -> tuple[str, ...]:
    for command in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(command[0]) and _output([*command, "version", "--short"], environment):
            return command
    raise NoEngine("Docker Compose isn't installed (Debian: docker-compose)")


def _answers(docker: str, environment: Mapping[str, str]) -> bool:
    return bool(_output([docker, "info", "--format", "{{.ServerVersion}}"], environment))


def _output(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """What a command prints, or nothing if it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=START_LIMIT_S)
    return done.stdout.strip() if done.returncode == 0 else ""
