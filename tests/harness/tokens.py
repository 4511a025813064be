"""Signs the tokens that brokers with token authentication accept: HS256 JSON Web Tokens, one claim, the role."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json


def signed_token(key: bytes, role: str) -> str:
    """A token of this role, as Pulsar's `AuthenticationProviderToken` reads it with `tokenSecretKey` = `key`."""
    unsigned = ".".join(_base64(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {"sub": role}))
    return f"{unsigned}.{_base64(hmac.digest(key, unsigned.encode(), hashlib.sha256))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
