"""The configuration file: one profile per cluster, with its place in a root and how to reach it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pulsar_advisor.admin.home import expanded, with_home
from pulsar_advisor.model.errors import UsageError

DEFAULT_CONFIG: Final = Path("~/.config/pulsar-advisor/config.toml")

Fields = Mapping[str, Any]
"""Fields of a connection, not yet checked."""

_PLACE: Final = ("root", "cluster", "ledger", "heads")


@dataclass(frozen=True)
class Profile:
    """`[profiles.<name>]`: where a cluster's files are, if given, and how to reach the cluster."""

    name: str
    root: str | None
    """A path or an object-store URL."""
    cluster: str | None
    """The cluster's name in paths; by default the profile's name."""
    ledger: str | None
    """Ledger database (SQLAlchemy URL)."""
    heads: str | None
    """Where heads of the ledger are kept (`execution.ledger.heads`)."""
    connection: Fields
    """Fields of `CaptureOptions`."""


def read_profiles(config: Path | None) -> dict[str, Profile]:
    """The profiles of a configuration file by name; without a path those of the user's own file, empty if it is absent.

    Raises `UsageError` if the file is missing, isn't TOML, or holds anything but profiles.
    """
    try:
        file = expanded(config or DEFAULT_CONFIG)
    except ValueError as error:
        if config is None:  # a user without a home, as in some containers
            return {}
        raise UsageError(f"--config: {error}") from error
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):  # the second is raised for a home such as /dev/null
        if config is None:
            return {}
        raise UsageError(f"there is no config file {file}") from None
    except OSError as error:
        raise UsageError(
            f"can't read config file {file}: {error.strerror or error}: correct it or HOME, or name another by --config"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} can't be read as TOML: {error}") from error
    profiles = document.pop("profiles", {})
    if document:
        raise UsageError(f"{file}: unknown key '{next(iter(document))}': expected only [profiles.NAME]")
    if not isinstance(profiles, dict) or not all(isinstance(fields, dict) for fields in profiles.values()):
        raise UsageError(f"{file}: a profile must be a table: [profiles.NAME]")
    return {name: _profile(file, name, fields) for name, fields in profiles.items()}


def _profile(file: Path, name: str, fields: Fields) -> Profile:
    place = {key: fields.get(key) for key in _PLACE}
    for key, value in place.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{file}: profiles.{name}.{key} is not a string: put it in quotes")
    root = place.pop("root")
    connection = {key: value for key, value in fields.items() if key not in _PLACE}
    try:
        root = None if root is None else with_home(root)
    except UsageError as error:
        raise UsageError(f"{file}: profiles.{name}.root: {error}") from error
    return Profile(name, root, **place, connection=connection)


def choose_profile(profiles: Mapping[str, Profile], name: str | None, cluster: str | None) -> Profile | None:
    """The profile with that name, else the cluster's; without either, the only profile, if there is just one.

    Raises `UsageError` for an unknown name.
    """
    if name is not None:
        if name not in profiles:
            raise UsageError(f"there is no profile '{name}'; there are: {', '.join(sorted(profiles)) or 'none'}")
        return profiles[name]
    if cluster is not None:
        return next((one for one in profiles.values() if (one.cluster or one.name) == cluster), None)
    return next(iter(profiles.values())) if len(profiles) == 1 else None
