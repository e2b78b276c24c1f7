"""The rules know no database: they are tested once, in the run on SQLite."""

from __future__ import annotations

from tests.conftest import DATABASE

collect_ignore_glob = ["test_*.py"] if DATABASE == "postgresql" else []
