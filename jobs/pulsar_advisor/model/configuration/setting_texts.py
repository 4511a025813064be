"""A setting's text, as Pulsar reads it or a what-if may give it."""

from __future__ import annotations

import math
import re
from typing import Final

from pulsar_advisor.model.configuration.defaults import Scalar, bits_of
from pulsar_advisor.model.configuration.settings import (
    FIELD_OF_KEY,
    LoadBalancerSettings,
    Names,
    allowed_range,
    is_flag,
)
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.text.some_of import nearest

_NUMBER = re.compile(r"[+-]?(NaN|Infinity|(\d{1,99}\.?\d{0,99}|\.\d{1,99})([eE][+-]?\d{1,9})?[dDfF]?)", re.ASCII)
"""As Java's `Double.valueOf` reads it, without its hexadecimal form."""
_WHOLE_NUMBER = re.compile(r"[+-]?0{0,99}\d{1,19}", re.ASCII)


class Unparsable(ValueError):
    """A text that doesn't fit the key's type; the message says what was expected."""


def parse(key: str, text: str) -> Scalar:
    """A text as Pulsar's `FieldParser` reads it for a key of this type (flags aren't trimmed)."""
    annotation = LoadBalancerSettings.model_fields[FIELD_OF_KEY[key]].annotation
    if annotation is bool:
        return text.lower() == "true"
    text = text.strip()
    if annotation is str:
        return text
    if annotation == Names:
        inner = text.removeprefix("[").removesuffix("]")
        return [name.strip() for name in inner.split(",") if name.strip()]
    if annotation is int:
        bits = bits_of(key)
        if not _WHOLE_NUMBER.fullmatch(text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
            raise Unparsable(f"a whole number of {bits} bits")
        return int(text)
    if annotation is not float:
        # The runtime configuration spells an unset optional value `Optional.empty`, a set one `Optional[1.0]`.
        if text.lower() in ("", "null", "none", "optional.empty"):
            return None
        text = text.removeprefix("Optional[").removesuffix("]")
    if not _NUMBER.fullmatch(text):
        raise Unparsable("a number")
    return float(text.rstrip("dDfF"))


_LEAST_PERIODS: Final = {
    "statsUpdateFrequencyInSecs": 1,
    "loadBalancerReportUpdateMinIntervalMillis": 1,
    "loadBalancerResourceQuotaUpdateIntervalMinutes": 1,
}
"""Below these a broker doesn't start. Source: `ServiceConfiguration` (`minValue`), `PulsarService` (periods of
`scheduleAtFixedRate`); Pulsar checks no other number (4.0.8)."""


def captured_value(key: str, text: str, origin: str) -> tuple[Scalar, list[str]]:
    """A value as a broker has it, and what is odd about it: an invalid flag is false. Raises `Unparsable`."""
    if is_flag(key) and text.lower() not in ("true", "false"):
        return False, [f"{origin.capitalize()} {key}='{text}' is not a flag: Pulsar reads it as false."]
    value = parse(key, text)
    return value, _out_of_range(key, value, origin)


def runtime_value(key: str, text: str) -> tuple[Scalar, list[str]]:
    """The same for a running broker's configuration. Raises `DataNotFit` if no broker can have it."""
    try:
        value, notes = captured_value(key, text, "runtime")
    except Unparsable as expected:
        raise DataNotFit(
            f"the captured runtime configuration holds {key}='{text}', but Pulsar expects {expected}; capture again"
        ) from None
    if isinstance(value, int) and value < _LEAST_PERIODS.get(key, value):
        raise DataNotFit(
            f"the captured runtime configuration holds {key}={text}: no broker starts with it; capture again"
        )
    return value, notes


def _out_of_range(key: str, value: Scalar, origin: str) -> list[str]:
    """A note if a number is outside the range that makes sense. Raises `DataNotFit` if it isn't finite."""
    allowed = allowed_range(key)
    if allowed is None or not isinstance(value, int | float) or allowed.low <= value <= allowed.high:
        return []
    if not math.isfinite(value):
        raise DataNotFit(f"{origin} {key}={value} can't be compared with anything: set a number, then capture again")
    return [
        f"{origin.capitalize()} {key}={value:.15g} is outside {allowed.low:.15g} to {allowed.high:.15g}: Pulsar "
        "doesn't check it, so this advice uses it too."
    ]


def what_if_value(key: str, text: str) -> Scalar:
    """The value that a what-if sets, in any release. Raises `UsageError` if the key is unknown or the text unusable."""
    if key not in FIELD_OF_KEY:
        raise UsageError(f"'{key}' is not a setting that affects recommendations{nearest(key, FIELD_OF_KEY)}")
    text = text.strip()
    if is_flag(key) and text.lower() not in ("true", "false"):
        raise UsageError(f"{key}='{text}' is not usable; expected true or false")
    try:
        value = parse(key, text)
    except Unparsable as expected:
        raise UsageError(f"{key}='{text}' is not usable; expected {expected}") from None
    allowed = allowed_range(key)
    if allowed and isinstance(value, int | float) and not allowed.low <= value <= allowed.high:
        raise UsageError(f"{key}={text} is out of range; expected {allowed.low:.15g} to {allowed.high:.15g}")
    return value
