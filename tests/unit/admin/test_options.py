"""Flags and profiles name the same things; flags win; what can't be used is named without its value."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.admin.profiles import read_profiles
from pulsar_advisor.model.errors import UsageError

CONFIG = """
[profiles.production]
concurrency = 4
zookeeper = { hosts = "zk:zk1:2181,zk2:2181/pulsar/" }

[profiles.production.admin]
admin_urls = ["https://broker-1:8443", "https://broker-2:8443/"]
token_file = "/run/secrets/pulsar"

[profiles.broken.admin]
admin_urls = ["https://broker-1:8443"]
token = "hunter2"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    return file


def test_a_profile_names_everything(config: Path) -> None:
    options = capture_options(profile=read_profiles(config)["production"])
    assert options.admin.admin_urls == ("https://broker-1:8443", "https://broker-2:8443")
    assert options.zookeeper is not None
    assert options.zookeeper.hosts == "zk1:2181,zk2:2181/pulsar"
    assert options.concurrency == 4


def test_a_flag_overrides_its_field_only(config: Path) -> None:
    options = capture_options(profile=read_profiles(config)["production"], admin={"admin_urls": ("http://other:8080",)})
    assert options.admin.admin_urls == ("http://other:8080",)
    assert options.admin.token_file == Path("/run/secrets/pulsar")


def test_another_way_to_authenticate_replaces_the_profiles(config: Path) -> None:
    options = capture_options(
        profile=read_profiles(config)["production"], admin={"token_env": "OUR_TOKEN", "token_file": None}
    )
    assert (options.admin.token_env, options.admin.token_file) == ("OUR_TOKEN", None)


@pytest.mark.parametrize("empty", ["token_env", "basic_user", "basic_password_env"])
def test_an_empty_name_does_not_leave_the_connection_without_credentials(empty: str) -> None:
    with pytest.raises(UsageError, match=f"{empty}: String should have at least 1 character"):
        capture_options(admin={"admin_urls": ("https://b:8443",), empty: ""})


def test_credentials_do_not_leave_tls_for_the_service_url() -> None:
    admin = {"admin_urls": ("https://b:8443",), "token_env": "OUR_TOKEN"}
    with pytest.raises(UsageError, match=r"use the brokers' pulsar\+ssl:// address"):
        capture_options(admin=admin, service_url="pulsar://b:6650")
    assert capture_options(admin=admin, service_url="pulsar+ssl://b:6651").service_url is not None
    assert capture_options(admin={"admin_urls": ("https://b:8443",)}, service_url="pulsar://b:6650")


def test_flags_alone_are_enough() -> None:
    options = capture_options(admin={"admin_urls": ("http://b:8080",)}, zookeeper="zk1:2181/chroot")
    assert options.zookeeper is not None
    assert options.zookeeper.hosts == "zk1:2181/chroot"


def test_a_budget_given_beside_a_profile_counts(config: Path) -> None:
    assert capture_options(profile=read_profiles(config)["production"]).max_requests is None
    assert capture_options(profile=read_profiles(config)["production"], max_requests=500).max_requests == 500


def test_without_any_admin_url_the_message_says_how_to_give_one() -> None:
    with pytest.raises(UsageError, match="--admin-url http://broker:8080, or name it in a profile"):
        capture_options()


def test_a_secret_in_the_config_file_is_refused_without_being_shown(config: Path) -> None:
    with pytest.raises(UsageError, match=r"profile 'broken': admin\.token: secrets are given by reference") as error:
        capture_options(profile=read_profiles(config)["broken"])
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"admin_urls": ["http://ops:s3cret@broker:8080"]},
        {"admin_urls": ["http://broker:8080?token=s3cret"]},
        {"admin_urls": ["http://broker:8080"], "token": "s3cret"},
        {"admin_urls": ["http://broker:8080"], "oauth2": {"issuer_url": "https://i.example", "key": "s3cret"}},
    ],
)
def test_no_stack_trace_shows_a_secret_that_was_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError) as refused:
        capture_options(admin=fields)
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    "place", [{"service_url": "pulsar://ops:s3cret@b:6650"}, {"metadata_store": "https://ops:s3cret@b"}]
)
def test_a_password_in_another_address_is_not_repeated(place: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="expected") as refused:
        capture_options(admin={"admin_urls": ["http://b:8080"]}, **place)
    assert "s3cret" not in str(refused.value)


def test_a_single_admin_url_without_brackets_is_answered_with_its_form() -> None:
    with pytest.raises(UsageError, match=r'admin\.admin_urls: give a list, even for one URL: \["http://broker:8080"\]'):
        capture_options(admin={"admin_urls": "http://b:8080"})


def test_files_may_be_in_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/olive")
    files = {"token_file": "~/token", "tls_ca_file": "~/ca.pem"}
    admin = capture_options(admin={"admin_urls": ("https://b:8443",), **files}).required_admin
    assert (admin.token_file, admin.tls_ca_file) == (Path("/home/olive/token"), Path("/home/olive/ca.pem"))


def test_a_home_that_is_not_known_is_usage() -> None:
    with pytest.raises(UsageError, match=r"admin\.token_file: there is no home directory for ~no-such-user/token"):
        capture_options(admin={"admin_urls": ("https://b:8443",), "token_file": "~no-such-user/token"})


@pytest.mark.parametrize("hosts", ["user:secret@zk1:2181", "zk1:2181 zk2:2181", "http://zk1:2181"])
def test_a_zookeeper_address_of_another_form_is_refused(hosts: str) -> None:
    with pytest.raises(UsageError, match=r"zookeeper\.hosts: "):
        capture_options(admin={"admin_urls": ("http://b:8080",)}, zookeeper=hosts)


def test_environment_variables_are_no_source(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    monkeypatch.setenv("PROFILES", '{"production": {"admin": {"admin_urls": ["http://evil:8080"]}}}')
    options = capture_options(profile=read_profiles(config)["production"])
    assert options.admin.admin_urls[0] == "https://broker-1:8443"


def test_a_profile_with_two_metadata_stores_is_refused(tmp_path: Path) -> None:
    stores = 'zookeeper = { hosts = "zk1:2181" }\noxia = { url = "oxia://o:6648/broker" }'
    (tmp_path / "config.toml").write_text(f"[profiles.p]\n{stores}\n")
    with pytest.raises(UsageError, match="profile 'p': give either ZooKeeper or Oxia, not both"):
        capture_options(profile=read_profiles(tmp_path / "config.toml")["p"])


@pytest.mark.parametrize("line", ['admin = "http://broker:8080"', "admin = 3", 'zookeeper = "zk:2181"'])
def test_what_is_no_table_in_a_profile_is_usage(tmp_path: Path, line: str) -> None:
    (tmp_path / "config.toml").write_text(f"[profiles.p]\n{line}\n")
    with pytest.raises(UsageError, match="in the profile is not a table"):
        capture_options(profile=read_profiles(tmp_path / "config.toml")["p"], zookeeper="zk:2181")
