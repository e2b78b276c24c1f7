"""What no test takes over from another one, and how long all of them wait for an answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.utils.translation import deactivate

from tests.proofs import PREFIX, forget_proofs, use_own_proofs

PATIENCE = 60.0
"""Seconds for an answer that comes."""


@pytest.fixture(autouse=True)
def forget_charts() -> None:
    """What a process remembers of the steps of charts, though each test has other rows."""
    from taskqueue.monitoring import comparison, performance, series

    series.cache.forget()
    performance.cache.forget()
    comparison.cache.forget()


@pytest.fixture(autouse=True)
def no_language() -> Iterator[None]:
    """Django's middleware leaves a thread in the language of its last request."""
    yield
    deactivate()


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """What asks the database for an answer within some seconds waits for longer here.

    So does the server for the next statement of a transaction. A busy machine may take them all.
    Tests of a database, or of a worker, that stays silent set their own time.
    """
    from taskqueue.engine import connections, sessions
    from taskqueue.management.cli import diagnosis
    from taskqueue.monitoring import health
    from taskqueue.monitoring.doctor import examination

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(health.ready.__kwdefaults__, "seconds", PATIENCE)
        patch.setattr(connections, "CONNECT_TIMEOUT", int(PATIENCE))
        patch.setattr(sessions, "SHORTEST_SILENCE", PATIENCE)
        patch.setattr(diagnosis, "LONGEST", PATIENCE)
        patch.setattr(examination, "LONGEST_SILENCE", PATIENCE)
        with suppress(ImportError):  # It needs an extra.
            from taskqueue.monitoring.metrics import collector

            patch.setattr(collector, "LONGEST", PATIENCE)
            patch.setattr(collector, "LONGEST_STATEMENT", f"{PATIENCE:.0f}s")
        yield


@pytest.fixture(scope="session", autouse=True)
def own_proofs() -> Iterator[None]:
    """Leave alone what workers of other runs have left on this host."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PREFIX, f"taskqueue-test-{os.getpid()}-")
        use_own_proofs()
        yield
        forget_proofs()
