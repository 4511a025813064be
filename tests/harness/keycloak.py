"""Runs a real OpenID issuer, Keycloak, on loopback: one realm whose clients get tokens by their secrets."""

from __future__ import annotations

import json
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from harness import children
from harness.artifacts import archive, java_home
from harness.certificates import Certificates
from harness.errors import ClusterDidNotStart
from harness.ports import free_ports

RELEASE = "26.7.3"
AUDIENCE = "urn:pulsar"
PLUGIN = "pulsar-broker-auth-oidc"
"""The artifact by which brokers accept an OpenID issuer's tokens."""
START_LIMIT_S = 600
POLL_INTERVAL_S = 0.5


class LiveKeycloak:
    """An issuer with one client per entry of `secrets`; those in `strangers` get tokens for another audience.

    A token's role is its client's id, and it is valid for `token_lifetime_s`.
    """

    def __init__(
        self, secrets: Mapping[str, str], certificates: Certificates, token_lifetime_s: int, *, strangers: set[str]
    ) -> None:
        self.port = next(free_ports())
        self.issuer_url = f"https://127.0.0.1:{self.port}/realms/pulsar"
        self.certificates = certificates
        self.realm = {
            "realm": "pulsar",
            "enabled": True,
            "accessTokenLifespan": token_lifetime_s,
            "clients": [_client(name, secret, name in strangers) for name, secret in secrets.items()],
        }

    @property
    def broker_settings(self) -> dict[str, str]:
        """The part of broker.conf that accepts this issuer's tokens beside those of the harness."""
        providers = ("AuthenticationProviderToken", "oidc.AuthenticationProviderOpenID")
        return {
            "authenticationProviders": ",".join(
                f"org.apache.pulsar.broker.authentication.{name}" for name in providers
            ),
            "openIDAllowedTokenIssuers": self.issuer_url,
            "openIDAllowedAudiences": AUDIENCE,
            "openIDRoleClaim": "azp",
            "openIDTokenIssuerTrustCertsFilePath": str(self.certificates.authority),
        }


@contextmanager
def running(keycloak: LiveKeycloak, directory: Path) -> Iterator[LiveKeycloak]:
    """It answers when the block begins, and is killed when it ends.

    Raises:
        LiveClusterUnavailable: Keycloak, or a Java that runs it, can't be had.
        ClusterDidNotStart: it ended, or didn't answer within `START_LIMIT_S`.
    """
    with tarfile.open(archive(f"org.keycloak:keycloak-quarkus-dist:{RELEASE}:tar.gz")) as distribution:
        distribution.extractall(directory, filter="data")
    home = directory / f"keycloak-{RELEASE}"
    imported = home / "data" / "import" / "realm.json"
    imported.parent.mkdir(parents=True)
    imported.write_text(json.dumps(keycloak.realm), encoding="utf-8")
    files = keycloak.certificates
    process = children.start(
        [
            *("env", f"JAVA_HOME={java_home(21, 'Keycloak')}", home / "bin" / "kc.sh"),
            *("start-dev", "--db=dev-mem", "--cache=local", "--import-realm", "--http-enabled=false"),
            *("--http-host=127.0.0.1", f"--https-port={keycloak.port}"),
            *(f"--https-certificate-file={files.broker}", f"--https-certificate-key-file={files.broker_key}"),
        ],
        directory / "keycloak.log",
    )
    deadline = time.monotonic() + START_LIMIT_S
    try:
        while not _answers(keycloak):
            if process.poll() is not None or time.monotonic() > deadline:
                log = (directory / "keycloak.log").read_text(encoding="utf-8", errors="replace")
                raise ClusterDidNotStart(f"Keycloak ended, or did not answer within {START_LIMIT_S} s:\n{log[-3000:]}")
            time.sleep(POLL_INTERVAL_S)
        yield keycloak
    finally:
        children.kill(process)
        shutil.rmtree(home)


def _answers(keycloak: LiveKeycloak) -> bool:
    try:
        found = f"{keycloak.issuer_url}/.well-known/openid-configuration"
        return requests.get(found, verify=str(keycloak.certificates.authority), timeout=10).ok
    except requests.RequestException:
        return False


def _client(name: str, secret: str, is_stranger: bool) -> dict[str, Any]:
    audience = {"included.custom.audience": "urn:else" if is_stranger else AUDIENCE}
    # Brokers refuse tokens without this claim, and Keycloak has no other way to give it.
    valid_from = {"claim.name": "nbf", "claim.value": "1", "jsonType.label": "long"}
    return {
        "clientId": name,
        "secret": secret,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "protocolMappers": [
            _mapper("audience", "oidc-audience-mapper", audience),
            _mapper("valid from", "oidc-hardcoded-claim-mapper", valid_from),
        ],
    }


def _mapper(name: str, kind: str, config: dict[str, str]) -> dict[str, Any]:
    settings = config | {"access.token.claim": "true"}
    return {"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": settings}
