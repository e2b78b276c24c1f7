"""What the tests of worker processes share."""

from __future__ import annotations

import pytest

POOLS = ("process", "thread")


@pytest.fixture(params=POOLS)
def pool(request: pytest.FixtureRequest) -> str:
    """Each pool in turn, for `--pool`."""
    return str(request.param)
