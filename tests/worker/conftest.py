"""Fixtures of the tests of worker processes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.chaos.proxy import ProxyProcess
from tests.pooler import Pooler
from tests.worker_process import worker_address

POOLS = ("process", "thread")


@pytest.fixture(params=POOLS)
def pool(request: pytest.FixtureRequest) -> str:
    """Each pool in turn, for `--pool`."""
    return str(request.param)


@pytest.fixture
def proxy(transactional_db: None, _pooler: None) -> Iterator[ProxyProcess]:
    """The way to PostgreSQL, which can be cut."""
    address = worker_address()
    found = ProxyProcess(address["HOST"], int(address["PORT"]))
    yield found
    found.close()


def through(way_in: ProxyProcess | Pooler) -> dict[str, str]:
    """Return the environment by which a worker takes that way."""
    way = {**worker_address(), "HOST": "127.0.0.1", "PORT": str(way_in.port)}
    return {"TASKQUEUE_TEST_CONNECTION": json.dumps(way)}
