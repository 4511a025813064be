"""What a connection's fields refer to: files, and secrets, which are given by reference and never shown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, SecretStr, StringConstraints

from pulsar_advisor.admin.home import expanded
from pulsar_advisor.model.errors import UsageError


def _handed_over(value: object) -> object:
    if value is not None and not isinstance(value, SecretStr):
        raise ValueError("secrets are given by reference: name the file or the environment variable that holds it")
    return value


Secret = Annotated[SecretStr, BeforeValidator(_handed_over)]
"""A secret's value, passed by a program as `SecretStr`; plain text, as in a config file, is refused."""

Given = Annotated[str, StringConstraints(min_length=1)]
"""A user, or the name of a variable: an empty one would leave the connection without credentials, unnoticed."""


UserPath = Annotated[Path, AfterValidator(expanded)]
"""A file, as people write it."""


_ENCRYPTED: Final = (b"-----BEGIN ENCRYPTED", b"Proc-Type: 4,ENCRYPTED")
"""How the two forms of a key in PEM say that they are."""


def require_tls_files(*files: Path | None) -> None:
    """Raises `UsageError` naming the first of these files that can't be used; None is a file that isn't configured.

    For the passphrase of a key OpenSSL would ask on the terminal, while its connection waits.
    """
    for file in files:
        if file is None:
            continue
        if not file.exists():
            raise UsageError(f"TLS file {file} does not exist")
        try:
            content = file.read_bytes() if file.is_file() else b""
        except OSError as error:
            raise UsageError(f"can't read TLS file {file}: {error.strerror or error}") from error
        if any(mark in content for mark in _ENCRYPTED):
            raise UsageError(f"TLS file {file} is encrypted: give the key without a passphrase, readable by you alone")


_GIVEN_ITSELF: Final = (
    "the file or environment variable given for a secret can't be read, and isn't shown, as it looks like the secret "
    "itself: name what holds the secret"
)
_SECRET: Final = re.compile(r"(token|data):|eyJ")
"""How a secret begins that is given for its file: in two forms that Pulsar's clients take, or a JSON Web Token."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def secret_at(reference: str) -> str:
    """The secret in `env:NAME` (an environment variable) or `file:PATH`. Raises `UsageError`."""
    kind, _, place = reference.partition(":")
    if kind not in ("env", "file") or not place:
        raise UsageError("secrets are given by reference: env:NAME or file:PATH")
    if kind == "env":
        return secret_text(None, None, place)
    try:
        return secret_text(None, expanded(Path(place)), None)
    except ValueError as error:
        raise UsageError(f"{reference}: {error}") from error


def secret_text(value: SecretStr | None, file: Path | None, variable: str | None) -> str:
    """The whole secret, without surrounding white space.

    Raises `UsageError` if it can't be read or is empty. The message doesn't name a file or variable that isn't there if
    it looks like the secret itself.
    """
    if value is not None:
        text = value.get_secret_value().strip()
    elif file is not None:
        try:
            text = file.read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            if _SECRET.match(str(file)):
                raise UsageError(_GIVEN_ITSELF) from None
            reason = getattr(error, "strerror", None) or "not text"
            raise UsageError(f"can't read the secret in {file}: {reason}") from error
    else:
        text = os.environ.get(variable or "", "").strip()
    if not text:
        if variable is not None and not _VARIABLE.fullmatch(variable):
            raise UsageError(_GIVEN_ITSELF)
        raise UsageError(f"{secret_source(value, file, variable)} holds no secret: it is empty or not set")
    return text


def secret_line(value: SecretStr | None, file: Path | None, variable: str | None) -> str:
    """A token or password: one line of ASCII, without Pulsar's prefix `token:`. Raises `UsageError`."""
    text = secret_text(value, file, variable)
    if not text.isascii() or not text.isprintable():
        raise UsageError(
            f"{secret_source(value, file, variable)} does not hold a token or password; expected one line of ASCII text"
        )
    return text.removeprefix("token:")


def secret_source(value: SecretStr | None, file: Path | None, variable: str | None) -> str:
    """Where the secret is kept, in words."""
    if value is not None:
        return "the connection"
    return str(file) if file is not None else f"environment variable {variable}"
