"""What a client in another language asks for, see `tests/api/clients/`."""

from __future__ import annotations

import time

from taskqueue import Context, current, task


@task(name="client.greet", api=True)
def greet(name: str) -> str:
    """Greet, and say so in the log."""
    current().log(f"greeting {name}")
    return f"Hello {name}!"


@task(name="client.work_until_stopped", api=True, takes_context=True)
def work_until_stopped(context: Context) -> None:
    """Work until somebody asks it to stop."""
    while True:
        context.check()
        time.sleep(0.02)


@task(name="client.fail_once", api=True, takes_context=True)
def fail_once(context: Context) -> str:
    """Fail at first, as what somebody mends and retries."""
    if context.attempt == 1:
        raise RuntimeError("not yet")
    return "at last"
