"""What streams of events tell holds nothing of arguments, results, errors, keys and reasons."""

from __future__ import annotations

import pytest

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.workflows import chain
from tests.engine.steps import claim_one, end
from tests.events.conftest import _ended_hub  # noqa: F401
from tests.events.steps import listen, number_all, written
from tests.events.streaming import close, logged_in, run
from tests.sample.tasks import echo, log_in

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-2c8e51"


def let_things_happen() -> None:
    log_in.using(unique_key=CANARY, metadata={"note": CANARY}).enqueue(CANARY, CANARY)
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value=f'"{CANARY}"')
    echo.enqueue(CANARY)
    error = {"error_class": "builtins.ValueError", "error_message": CANARY, "traceback": CANARY}
    end(claim_one(), OutcomeKind.FAILED, **error)
    control.cancel(echo.enqueue(CANARY).id, by=CANARY, reason=CANARY)
    control.pause("default", by=CANARY, reason=CANARY)
    chain(echo.s(CANARY), echo.s(CANARY)).enqueue()
    number_all()


def test_no_secret_is_in_a_stream_or_a_page() -> None:
    listen()
    let_things_happen()
    last = max(event.seq or 0 for event in written())
    assert last > 8

    async def body() -> str:
        client = await logged_in()
        answer = await client.get("/api/v1/events/stream/", headers={"Last-Event-ID": "0"})
        told = ""
        async for part in answer.streaming_content:
            told += part.decode()
            if f"id: {last}\n" in told:
                break
        await close(answer)
        return told + (await client.get("/api/v1/events/?after=0")).content.decode()

    told = run(body)
    assert "event: task.failed" in told
    assert f'"seq":{last}' in told.replace(" ", "")
    assert CANARY not in told
