"""Root, cluster and connection: options first, then the environment, then a profile; clusters are never mixed up."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.cli.options import CLUSTER_VARIABLE, ROOT_VARIABLE, Connection, LedgerPlace, Place
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
    assert LedgerPlace().url(Place()) == "sqlite:////ledger.sqlite"
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
