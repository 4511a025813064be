"""Builds the images of docker-compose.yaml without a registry: a base from Debian's archive, and stand-ins."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.artifacts import class_path
from stack.engine import Engine, NoEngine

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]

BASE = "pulsar-advisor-test/base:bookworm"
IMAGES = {
    "ADVISOR_IMAGE": "pulsar-advisor-test/advisor:latest",
    "BASE_IMAGE": BASE,
    "POSTGRES_IMAGE": "pulsar-advisor-test/postgres:15",
    "PULSAR_IMAGE": "pulsar-advisor-test/pulsar:4.0.8",
}
"""The variables of docker-compose.yaml that name images, set to the ones built here."""


def build_images(engine: Engine) -> None:
    """Build what has changed; layers are kept between runs.

    Raises:
        NoEngine: the base can't be made, because debootstrap isn't installed.
        LiveClusterUnavailable: the jars of Pulsar can't be had.
    """
    if not engine.has_image(BASE):
        _make_base(engine)
    base = ("--build-arg", f"BASE_IMAGE={BASE}")
    engine.run("build", *base, "--tag", IMAGES["POSTGRES_IMAGE"], HERE / "postgres")
    jars = Path(class_path().removesuffix("/*"))
    with tempfile.TemporaryDirectory(dir=jars.parent) as scratch:
        context = Path(scratch, "pulsar")
        shutil.copytree(HERE / "pulsar", context)
        shutil.copytree(jars, context / "lib", copy_function=os.link)
        engine.run("build", *base, "--tag", IMAGES["PULSAR_IMAGE"], context)
    engine.run("build", *base, *_package_index(), "--tag", IMAGES["ADVISOR_IMAGE"], REPOSITORY)


def _make_base(engine: Engine) -> None:
    """Debian bookworm as its installer makes it, under a name of ours."""
    debootstrap = shutil.which("debootstrap")
    if debootstrap is None:
        raise NoEngine("the base image can't be made: debootstrap isn't installed")
    with tempfile.TemporaryDirectory() as scratch:
        folder, archive = Path(scratch, "root"), Path(scratch, "root.tar")
        subprocess.run([debootstrap, "--variant=minbase", "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
        for cached in (folder / "var/cache/apt/archives").glob("*.deb"):
            cached.unlink()
        subprocess.run(["tar", "-C", folder, "-cf", archive, "."], check=True)
        engine.run("import", archive, BASE)


def _package_index() -> tuple[str, ...]:
    """The secrets that let a build use the package index that pip uses here."""
    secrets: list[str] = []
    certificates = os.environ.get("PIP_CERT")
    index = os.environ.get("PIP_INDEX_URL")
    if certificates or index:
        settings = Path(tempfile.mkdtemp(), "pip.conf")
        settings.write_text(
            "[global]\n"
            + ("cert = /run/secrets/ca.pem\n" if certificates else "")
            + (f"index-url = {index}\n" if index else "")
        )
        secrets += ["--secret", f"id=pip.conf,src={settings}"]
    if certificates:
        secrets += ["--secret", f"id=ca.pem,src={certificates}"]
    return tuple(secrets)
