"""Root, cluster and connection: options first, then the environment, then a profile; clusters are never mixed up."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.cli.options import RequestOptions
from pulsar_advisor.cli.places import (
    CLUSTER_VARIABLE,
    ROOT_VARIABLE,
    Connection,
    HeadsPlaces,
    LedgerPlace,
    Place,
    PolicyFile,
    command,
)
from pulsar_advisor.model.errors import UsageError

CONFIG = """
[profiles.production]
root = "/advisor"
cluster = "prod"
ledger = "sqlite:////ledger.sqlite"
admin = { admin_urls = ["http://prod:8080"], token_env = "PROD_TOKEN" }
"""
STAGING = """
[profiles.staging]
root = "/advisor"
admin = { admin_urls = ["http://staging:8080"] }
"""


@pytest.fixture
def config(nothing_configured: Path) -> Path:
    nothing_configured.parent.mkdir(parents=True)
    nothing_configured.write_text(CONFIG)
    return nothing_configured


def opened(place: Place) -> tuple[str, str]:
    root = place.open()
    return root.url, root.cluster


def test_without_anything_the_message_names_every_way() -> None:
    with pytest.raises(UsageError, match=r"--root and --cluster, set PULSAR_ADVISOR_ROOT and PULSAR_ADVISOR_CLUSTER"):
        Place().open()
    with pytest.raises(UsageError, match=r"Give --cluster, set PULSAR_ADVISOR_CLUSTER, or write a profile"):
        Place(root="r").open()
    assert Place(root="r").open_if_named() is None


def test_the_only_profile_is_enough(config: Path) -> None:
    assert opened(Place()) == ("/advisor", "prod")
    assert LedgerPlace().ledger_url() == "sqlite:////ledger.sqlite"
    assert Connection().options(Place()).required_admin.admin_urls == ("http://prod:8080",)


def test_options_win_over_variables_and_variables_over_the_only_profile(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, "/from/environment")
    monkeypatch.setenv(CLUSTER_VARIABLE, "test")
    assert opened(Place()) == ("/from/environment", "test")
    assert opened(Place(root="/typed", cluster="typed")) == ("/typed", "typed")


def test_another_cluster_never_gets_the_profiles_connection(config: Path) -> None:
    with pytest.raises(UsageError, match="no admin URL"):
        Connection().options(Place(root="r", cluster="test"))


def test_another_address_never_gets_the_credentials_of_a_profile_nobody_named(config: Path) -> None:
    options = Connection(admin_url=("http://elsewhere:8080",)).options(Place())
    assert options.required_admin.token_env is None
    options = Connection(admin_url=("http://elsewhere:8080",)).options(Place(profile="production"))
    assert options.required_admin.token_env == "PROD_TOKEN"


@pytest.mark.parametrize("empty", [{"root": ""}, {"root": "r", "cluster": ""}])
def test_an_option_that_is_given_and_empty_leads_to_no_other_cluster(config: Path, empty: dict[str, str]) -> None:
    """As `--cluster "$CLUSTER"` is without the variable."""
    with pytest.raises(UsageError, match=r"the root's name is empty|cluster name '' can't be part of a path"):
        Place(**empty).open()


def test_a_ledger_that_is_given_and_empty_is_no_other_ledger(config: Path) -> None:
    with pytest.raises(UsageError, match="is not a ledger URL"):
        LedgerPlace(ledger="").ledger_url()


def test_a_proposer_who_is_given_and_empty_is_refused_before_anything_is_made() -> None:
    with pytest.raises(UsageError, match="give your name"):
        RequestOptions(as_="").request()


def test_a_home_that_no_shell_expands_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv(ROOT_VARIABLE, "~/of/a/variable")
    assert opened(Place(cluster="c")) == ("/home/ann/of/a/variable", "c")
    assert opened(Place(root="~/advisor", cluster="c")) == ("/home/ann/advisor", "c")
    [folder] = HeadsPlaces(heads="~/heads").keepers(Place())
    assert str(folder) == "/home/ann/heads"
    with pytest.raises(UsageError, match=r"can't read the approval policy /home/ann/policy\.yaml"):
        PolicyFile(policy=Path("~/policy.yaml")).read()


def test_a_profile_that_is_named_wins_over_a_variable_for_another_cluster(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CLUSTER_VARIABLE, "test")
    assert opened(Place(profile="production")) == ("/advisor", "prod")


def test_of_several_profiles_the_clusters_own_is_taken(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text(CONFIG + STAGING)
    with pytest.raises(UsageError, match="choose a profile with --profile: production, staging"):
        Place().open()
    assert opened(Place(cluster="prod")) == ("/advisor", "prod")
    monkeypatch.setenv(CLUSTER_VARIABLE, "staging")
    assert opened(Place()) == ("/advisor", "staging")
    assert Connection().options(Place()).required_admin.admin_urls == ("http://staging:8080",)


def test_a_command_to_copy_has_the_options_of_the_one_that_shows_it() -> None:
    place = LedgerPlace(profile="prod", config=Path("my config.toml"), ledger="env:LEDGER")
    policy = PolicyFile(policy=Path("alone.yaml"))
    connection = Connection(admin_url=("http://a:8080", "http://b:8080"))
    assert command(("apply", "c8b31b82"), place, connection, policy) == (
        "pulsar-advisor apply c8b31b82 --profile prod --config 'my config.toml' --ledger env:LEDGER "
        "--admin-url http://a:8080 --admin-url http://b:8080 --policy alone.yaml"
    )


def test_heads_that_are_given_and_empty_are_not_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_ADVISOR_HEADS", "log")
    assert HeadsPlaces().keepers(Place())
    with pytest.raises(UsageError, match="--heads is empty"):
        HeadsPlaces(heads="").keepers(Place())


def test_a_webhook_among_the_heads_is_not_repeated() -> None:
    shown = HeadsPlaces(heads="log,https://hooks.example/password,s3://heads").shown
    assert command(["apply"], shown) == "pulsar-advisor apply --heads log,WEBHOOK,s3://heads"
    assert HeadsPlaces().shown == HeadsPlaces()
