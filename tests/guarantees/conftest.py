"""What the tests of the guarantees share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guarantees.history import Journal

SHORT_LEASE = {"LEASE_DURATION": 6, "PING_INTERVAL": 1, "TAKEOVER_INTERVAL": 1, "CRASH_DELAY": 1}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """An empty journal."""
    return Journal(tmp_path / "journal")


@pytest.fixture
def short_lease() -> dict[str, object]:
    """Settings under which a worker that is gone is noticed within seconds."""
    return dict(SHORT_LEASE)


@pytest.fixture(params=["process", "thread"])
def pool(request: pytest.FixtureRequest) -> str:
    """Each pool in turn, for `--pool`."""
    return str(request.param)
