"""The server that browsers are sent to."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def live_server(django_db_setup: None, live_server: Any) -> Any:
    """The live server, started after the test database.

    Started before, it would find SQLite in memory and share one connection among its threads.
    """
    return live_server
