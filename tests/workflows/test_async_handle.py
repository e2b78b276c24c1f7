"""The handle in async code: everything that it tells has been read by then."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync

from taskqueue import chain
from taskqueue.engine.workflows import members
from taskqueue.exceptions import InvalidWorkflow
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish

pytestmark = pytest.mark.django_db(transaction=True)


def test_errors_can_be_read_in_async_code() -> None:
    run = finish(chain(fail.s(), echo.s()).enqueue())

    async def errors() -> list[str]:
        await run.arefresh()
        return [error["error_class"] for error in run.errors.values()]

    assert async_to_sync(errors)() == ["builtins.ValueError"]


def test_the_result_of_a_step_can_be_read_in_async_code() -> None:
    run = finish(chain(add.s(1, 2), echo.s()).enqueue())
    assert async_to_sync(run.areturn_value_of)("add") == 3


def test_a_result_that_is_too_large_keeps_no_verb_and_no_wait_from_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members, "LARGEST_LIST", 6)
    run = finish(add.starmap((n, 1) for n in range(7)).enqueue())

    async def wait_and_retry() -> str:
        await run.async_wait(5)
        with pytest.raises(InvalidWorkflow, match="larger than a list may be"):
            run.return_value  # noqa: B018
        (step,) = run.steps
        await run.aretry(from_step=step)
        return run.status

    assert async_to_sync(wait_and_retry)() == "running"
