"""What the tests of worker processes share."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.db import connection

from tests.chaos.proxy import ProxyProcess
from tests.worker_process import worker_environment

POOLS = ("process", "thread")


@pytest.fixture(params=POOLS)
def pool(request: pytest.FixtureRequest) -> str:
    """Each pool in turn, for `--pool`."""
    return str(request.param)


@pytest.fixture
def proxy(transactional_db: None) -> Iterator[ProxyProcess]:
    """The way to PostgreSQL, which can be cut."""
    settings = connection.settings_dict
    found = ProxyProcess(settings["HOST"], int(settings["PORT"]))
    yield found
    found.close()


def through(proxy: ProxyProcess) -> dict[str, str]:
    """What a worker's environment says for it to take that way."""
    own = json.loads(worker_environment({})["TASKQUEUE_TEST_CONNECTION"])
    way = {**own, "HOST": "127.0.0.1", "PORT": str(proxy.port)}
    return {"TASKQUEUE_TEST_CONNECTION": json.dumps(way)}
