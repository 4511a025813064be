"""How to reach the admin API of one cluster and authenticate to it."""

from __future__ import annotations

from base64 import b64encode
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pulsar_advisor.admin.oauth2 import ClientCredentials
from pulsar_advisor.admin.secret import Given, Secret, UserPath, secret_line
from pulsar_advisor.admin.web_address import WebAddress
from pulsar_advisor.model.text.plain_text import plain


class AdminConnection(BaseModel):
    """How to reach the admin API and authenticate to it.

    A secret is a reference (a file or an environment variable), read again for every call so that a rotated one is
    picked up, or a `SecretStr` passed by a program. At most one of `token`, `token_file`, `token_env`, `basic_user`
    and `oauth2`; a client certificate may accompany any of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    admin_urls: tuple[str, ...] = Field(min_length=1)
    """`http(s)://host:port[/path]` of brokers or of a proxy in front of them; tried in turn."""
    token: Secret | None = None
    token_file: UserPath | None = None
    token_env: Given | None = None
    """Name of the environment variable that holds the token."""
    basic_user: Given | None = None
    basic_password: Secret | None = None
    basic_password_file: UserPath | None = None
    basic_password_env: Given | None = None
    oauth2: ClientCredentials | None = None
    tls_ca_file: UserPath | None = None
    """CA certificates to trust instead of the system's."""
    tls_cert_file: UserPath | None = None
    tls_key_file: UserPath | None = None
    tls_verify_hostname: bool = True
    connect_timeout_s: float = Field(default=5.0, gt=0)
    read_timeout_s: float = Field(default=30.0, gt=0)
    """Longest silence allowed while a broker answers a GET, and the time within which the answer has to begin."""
    write_timeout_s: float = Field(default=75.0, gt=0)
    """The same for other methods: an unload may take `namespaceBundleUnloadingTimeoutMs`, 60 s by default."""

    @field_validator("admin_urls", mode="before")
    @classmethod
    def _several(cls, urls: object) -> object:
        if isinstance(urls, str):
            raise ValueError('give a list, even for one URL: ["http://broker:8080"]')
        return urls

    @field_validator("admin_urls")
    @classmethod
    def _plain_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_checked_url(url) for url in urls)

    @model_validator(mode="after")
    def _one_way_to_authenticate(self) -> Self:
        ways = (self.token, self.token_file, self.token_env, self.basic_user, self.oauth2)
        if sum(way is not None for way in ways) > 1:
            raise ValueError("give only one of token_file, token_env, basic_user, oauth2")
        passwords = (self.basic_password, self.basic_password_file, self.basic_password_env)
        if sum(password is not None for password in passwords) != (self.basic_user is not None):
            raise ValueError("basic_user requires exactly one of basic_password_file, basic_password_env")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file must be given together")
        return self

    @property
    def has_credentials(self) -> bool:
        """Whether an Authorization header or a client certificate is sent."""
        references = (self.token_file, self.token_env, self.basic_user, self.oauth2, self.tls_cert_file)
        return self.token is not None or any(references)

    def authorization(self) -> str | None:
        """The Authorization header's value, unless it comes from an OAuth2 issuer. Raises `UsageError`."""
        if self.token is not None or self.token_file or self.token_env:
            return f"Bearer {secret_line(self.token, self.token_file, self.token_env)}"
        if self.basic_user is not None:
            password = secret_line(self.basic_password, self.basic_password_file, self.basic_password_env)
            return f"Basic {b64encode(f'{self.basic_user}:{password}'.encode()).decode()}"
        return None


def _checked_url(url: str) -> str:
    if "@" in url:
        raise ValueError("an address must not carry a password: use basic_user and basic_password_file")
    if "?" in url:
        raise ValueError("an address must not carry a query, which often holds a secret: give it without")
    try:
        return str(WebAddress.parse(url)).rstrip("/")
    except ValueError as error:
        raise ValueError(
            f"'{plain(url)}' is not a web address; expected the form http://host:8080 or https://host:8443"
        ) from error
