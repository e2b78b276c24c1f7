"""Signatures of webhooks, by Standard Webhooks 1.0. Standard library only.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable
from secrets import token_bytes

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Return a secret that nobody has had before."""
    return PREFIX + b64encode(token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, *, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message, with the version of the scheme."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(b64decode(secret.removeprefix(PREFIX)), signed, "sha256")
    return f"v1,{b64encode(digest).decode()}"


def signed_headers(
    secrets: Iterable[str], *, message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the headers of a message; a signature for each secret, while one is replaced."""
    signatures = (
        sign(secret, message_id=message_id, timestamp=timestamp, body=body) for secret in secrets
    )
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
