"""The resolver and the receivers of the tests of webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.webhooks.receiver import CERTIFICATES, Receiver, receiving
from tests.webhooks.resolver import Resolver, resolver

__all__ = ["Resolver", "receiver", "resolver", "tls_receiver"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver over plain HTTP on 127.0.0.1."""
    with receiving() as running:
        yield running


@pytest.fixture
def tls_receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver over HTTPS on 127.0.0.1, whose certificate is for `hooks.test`."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "ca.pem"))
    with receiving(tls=True) as running:
        yield running
