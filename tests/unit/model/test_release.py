from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from pulsar_advisor.model.release import DISTRIBUTION, running_release


def test_the_release_is_that_of_the_installed_package() -> None:
    assert running_release() == version(DISTRIBUTION)


def test_where_spark_got_only_our_files_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("pulsar_advisor.model.release.version", none)
    assert running_release() == ""
