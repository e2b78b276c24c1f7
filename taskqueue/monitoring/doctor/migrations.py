"""Whether the tables are those of this code."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from taskqueue.monitoring.doctor.finding import OK, PROBLEM, Finding

CHECK = "migrations"


def look_at_migrations(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Those of taskqueue that are not applied."""
    executor = MigrationExecutor(connection)
    leaves = [node for node in executor.loader.graph.leaf_nodes() if node[0] == "taskqueue"]
    missing = [str(migration) for migration, _ in executor.migration_plan(leaves)]
    if missing:
        yield Finding(
            check=CHECK,
            severity=PROBLEM,
            seen=f"Migrations are not applied: {', '.join(missing)}. Workers refuse to start.",
            remedy=f"manage.py migrate --database {connection.alias}",
        )
    else:
        yield Finding(check=CHECK, severity=OK, seen="All migrations are applied.")
