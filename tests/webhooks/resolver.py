"""A resolver of the tests' own, in place of the system's."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import pytest

from taskqueue.core.addresses import address_of


class Resolver:
    """Answers each question for a name with the next of its answers; the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Sequence[str]]] = {}
        self.asked: list[str] = []

    def knows(self, name: str, *answers: Sequence[str]) -> None:
        """Let it answer these for a name, one after the other."""
        self.answers[name] = list(answers)

    def getaddrinfo(self, host: Any, port: Any, *rest: Any, **named: Any) -> list[Any]:
        """Stand for `socket.getaddrinfo`."""
        name = host.decode() if isinstance(host, bytes) else str(host)
        self.asked.append(name)
        if name not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self.answers[name]
        return [
            (
                socket.AF_INET6 if address_of(text).version == 6 else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (text, port, 0, 0) if address_of(text).version == 6 else (text, port),
            )
            for text in (answers.pop(0) if len(answers) > 1 else answers[0])
        ]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    """The only resolver of the test."""
    made = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    return made
