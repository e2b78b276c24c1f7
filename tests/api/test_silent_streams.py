"""A stream without events keeps its connection, and says where to go on."""

from __future__ import annotations

import pytest

from taskqueue.monitoring import streams
from tests.events.conftest import _ended_hub  # noqa: F401
from tests.events.streaming import close, logged_in, parts, run

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_comment_is_sent_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "COMMENT", 0.1)

    async def body() -> None:
        client = await logged_in()
        answer = await client.get("/api/v1/events/stream/?kind=task.enqueued")
        stream = parts(answer)
        first = [await anext(stream) for _ in range(3)]
        assert first == [{"id": "0", "retry": "2000", "": "is open"}] * 3
        await stream.aclose()
        await close(answer)

    run(body)
