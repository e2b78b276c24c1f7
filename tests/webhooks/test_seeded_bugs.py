"""The tests of the client see the mistakes that matter most."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest

from taskqueue.core.addresses import Address, address_of
from taskqueue.core.webhook_targets import Allowed, Target
from taskqueue.webhooks import client
from tests.webhooks import test_client
from tests.webhooks.receiver import Receiver
from tests.webhooks.resolver import Resolver


def test_a_second_look_up_behind_the_check_is_seen(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected = client._connected

    def by_name(target: Target, addresses: Sequence[Address]) -> socket.socket:
        """The mistake: the checked addresses are dropped, and the name is resolved again."""
        found = client.resolve(target.host, target.port)
        return connected(target, [address_of(text) for text in found])

    monkeypatch.setattr(client, "_connected", by_name)
    _is_seen(
        lambda: test_client.test_the_socket_goes_to_the_checked_address_without_a_second_look_up(
            resolver
        )
    )


def test_a_client_that_connects_by_itself_is_seen(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_url(
        target: Target, connected: Any, method: str, body: bytes, headers: Any
    ) -> client.Answer:
        """The mistake: http.client gets the name."""
        with closing(http.client.HTTPConnection(target.host, target.port)) as connection:
            connection.request(method, target.path, body, dict(headers))
            response = connection.getresponse()
            return client.Answer(status=response.status, body=response.read(), retry_after="")

    monkeypatch.setattr(client, "_exchanged", by_url)
    _is_seen(
        lambda: test_client.test_the_socket_goes_to_the_checked_address_without_a_second_look_up(
            resolver
        )
    )


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_that_is_followed_is_seen(
    status: int, receiver: Receiver, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanged = client._exchanged

    def following(
        target: Target, connected: Any, method: str, body: bytes, headers: Any
    ) -> client.Answer:
        """The mistake: where a redirect leads, whoever lives there."""
        answer = exchanged(target, connected, method, body, headers)
        if answer.status in (302, 307):
            monkeypatch.setattr(client, "_exchanged", exchanged)
            address = receiver.replies[0].headers["Location"]
            return client.post(address, body, headers, allowed=Allowed.of(["127.0.0.0/8"]))
        return answer

    monkeypatch.setattr(client, "_exchanged", following)
    _is_seen(
        lambda: test_client.test_a_redirect_is_an_answer_and_is_not_followed(
            status, receiver, resolver
        )
    )


def test_only_the_first_address_being_checked_is_seen(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = client.checked_addresses

    def first_alone(target: Target, allowed: Allowed, resolve: Any) -> list[Address]:
        """The mistake: any further address passes."""
        found = resolve(target.host, target.port)
        return [*checked(target, allowed, lambda *_: found[:1]), *map(address_of, found[1:])]

    monkeypatch.setattr(client, "checked_addresses", first_alone)
    _is_seen(
        lambda: test_client.test_one_refused_address_among_public_ones_is_enough(
            resolver, monkeypatch
        )
    )


def _is_seen(check: Callable[[], None]) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception, client.NoAnswer)):
        check()
