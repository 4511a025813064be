"""A profile names a cluster's place and the way to it; its name, the cluster, or being the only one chooses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.admin.profiles import Profile, choose_profile, read_profiles
from pulsar_advisor.admin.secret import secret_line
from pulsar_advisor.model.errors import UsageError

CONFIG = """
[profiles.production]
root = "~/advisor"
cluster = "prod"
ledger = "postgresql://db/ledger"
concurrency = 4

[profiles.test]
"""


@pytest.fixture
def profiles(tmp_path: Path) -> dict[str, Profile]:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    return read_profiles(file)


def test_a_profile_says_where_the_files_are_and_how_to_reach_the_cluster(profiles: dict[str, Profile]) -> None:
    profile = profiles["production"]
    assert (profile.root, profile.cluster) == (str(Path.home() / "advisor"), "prod")
    assert (profile.ledger, profile.connection) == ("postgresql://db/ledger", {"concurrency": 4})


def test_a_byte_order_mark_as_windows_editors_write_is_no_part_of_a_file(tmp_path: Path) -> None:
    (config := tmp_path / "config.toml").write_text(CONFIG, encoding="utf-8-sig")
    assert read_profiles(config).keys() == {"production", "test"}
    (token := tmp_path / "token").write_text("eyJhbGciOiJub25lIn0.e30.", encoding="utf-8-sig")
    assert secret_line(None, token, None) == "eyJhbGciOiJub25lIn0.e30."


@pytest.mark.parametrize(
    ("name", "cluster", "chosen"),
    [
        ("test", "prod", "test"),
        (None, "prod", "production"),
        (None, "test", "test"),
        (None, "production", None),
    ],
)
def test_a_name_wins_over_the_cluster(
    profiles: dict[str, Profile], name: str | None, cluster: str | None, chosen: str | None
) -> None:
    found = choose_profile(profiles, name, cluster)
    assert (found.name if found else None) == chosen


def test_the_only_profile_is_meant_where_nothing_is_named(profiles: dict[str, Profile]) -> None:
    only = {"test": profiles["test"]}
    assert choose_profile(only, None, None) == profiles["test"]
    assert choose_profile({}, None, None) is None


def test_none_of_several_profiles_is_meant_where_nothing_is_named(profiles: dict[str, Profile]) -> None:
    assert choose_profile(profiles, None, None) is None


def test_an_unknown_profile_is_answered_with_the_known_ones(profiles: dict[str, Profile]) -> None:
    with pytest.raises(UsageError, match="there is no profile 'prod'; there are: production, test"):
        choose_profile(profiles, "prod", None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[profiles", "can't be read as TOML"),
        ("[profile.x]\n", "unknown key 'profile': expected"),
        ("[profiles]\nx = 1\n", "a profile must be a table"),
        ("[profiles.x]\nroot = 1\n", "profiles.x.root is not a string: put it in quotes"),
        ('[profiles.x]\nroot = "~no-such-user"\n', "profiles.x.root: there is no home directory for ~no-such-user"),
        (None, "there is no config file"),
    ],
)
def test_an_unusable_config_file_is_named(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "config.toml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=message) as error:
        read_profiles(file)
    assert str(file) in str(error.value)


def test_a_ledger_that_is_a_table_does_not_show_its_password(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[profiles.x]\nledger = { url = "postgresql://a:hunter2@db/x" }\n')
    with pytest.raises(UsageError, match=r"profiles\.x\.ledger is not a string") as error:
        read_profiles(tmp_path / "config.toml")
    assert "hunter2" not in str(error.value)


def test_a_config_file_in_a_home_that_is_not_known_is_usage() -> None:
    with pytest.raises(UsageError, match=r"--config: there is no home directory for ~no-such-user/config\.toml"):
        read_profiles(Path("~no-such-user/config.toml"))


def test_a_user_without_a_home_has_no_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_uid: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert read_profiles(None) == {}
    monkeypatch.setenv("HOME", "/dev/null")
    assert read_profiles(None) == {}


def test_a_config_file_of_the_home_that_can_not_be_read_is_no_matter_of_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # still the home of the user that this process ran as before
    (tmp_path / ".config/pulsar-advisor/config.toml").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"can't read config file .*toml: Is a directory: correct it or HOME"):
        read_profiles(None)
