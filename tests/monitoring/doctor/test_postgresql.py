"""What the doctor finds on a PostgreSQL: who holds old snapshots, dead rows, bloat, settings."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from taskqueue.engine.statement import change, fetch
from taskqueue.models import Task
from taskqueue.monitoring import doctor
from taskqueue.monitoring.doctor import (
    Finding,
    Severity,
    bloat,
    dead_rows,
    examination,
)
from taskqueue.monitoring.doctor.dead_rows import look_at_snapshots
from taskqueue.monitoring.doctor.server import (
    look_at_listening,
    look_at_pooling,
    look_at_server,
    of_settings,
)
from tests.conftest import require_tool
from tests.engine.steps import another_connection
from tests.monitoring.many import fill
from tests.monitoring.rows import MINUTE, ago, make_worker
from tests.monitoring.test_health import elsewhere
from tests.pooler import PROGRAM, Pooler
from tests.worker_process import wait_until

pytestmark = [pytest.mark.postgresql_only, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def holder() -> Iterator[Any]:
    """Another session that holds a snapshot, as a report would that somebody forgot."""
    with another_connection() as other:
        change(other, "SET application_name = 'forgotten report'")
        change(other, "BEGIN ISOLATION LEVEL REPEATABLE READ")
        fetch(other, "SELECT count(*) FROM taskqueue_task")
        yield other
        change(other, "ROLLBACK")


def pid_of(other: Any) -> str:
    """Of its session."""
    return str(other.connection.info.backend_pid)


def test_the_oldest_holder_of_a_snapshot_is_named(holder: Any) -> None:
    [found] = look_at_snapshots(connection)
    assert (found.severity, found.subject) == (Severity.OK, pid_of(holder))
    assert "(forgotten report) of " in found.seen
    assert "idle in transaction" in found.seen


def test_a_snapshot_held_for_long_is_a_problem_with_its_holder_and_a_remedy(
    holder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_rows, "TOO_LONG", 0.0)
    monkeypatch.setattr(dead_rows, "LONG", 0.0)
    found = next(each for each in doctor.examine() if each.check == "snapshots")
    assert (found.severity, found.subject) == (Severity.PROBLEM, pid_of(holder))
    assert f"pg_terminate_backend({pid_of(holder)})" in found.remedy


def test_a_snapshot_is_old_by_what_was_written_since_too(
    holder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_rows, "MANY", 1)
    Task.objects.create(name="a", crash_delay=MINUTE, run_after=ago(MINUTE))
    Task.objects.update(priority=1)
    [found] = look_at_snapshots(connection)
    assert (found.severity, found.subject) == (Severity.WARNING, pid_of(holder))


def test_a_replication_slot_that_nobody_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_rows, "MUCH_LOG", 0)
    fetch(connection, "SELECT pg_create_physical_replication_slot('left_behind', true)")
    try:
        found = {each.subject: each for each in look_at_snapshots(connection)}["left_behind"]
        assert (found.severity, "not in use" in found.seen) == (Severity.WARNING, True)
        assert "pg_drop_replication_slot('left_behind')" in found.remedy
    finally:
        fetch(connection, "SELECT pg_drop_replication_slot('left_behind')")


def test_a_role_that_may_see_little_is_told_so_and_nothing_breaks(holder: Any) -> None:
    change(connection, "CREATE ROLE blind_doctor")
    change(connection, "SET ROLE blind_doctor")
    try:
        findings = doctor.examine()
    finally:
        change(connection, "RESET ROLE")
        change(connection, "DROP ROLE blind_doctor")
    hidden = [each for each in findings if each.subject == "blind_doctor"]
    assert [each.severity for each in hidden] == [Severity.INFO]
    assert 'GRANT pg_read_all_stats TO "blind_doctor"' in hidden[0].remedy
    denied = [each for each in findings if "check could not run: permission denied" in each.seen]
    assert {each.check for each in denied} >= {"work"}
    assert all(each.severity is Severity.INFO for each in denied)


def test_dead_rows_are_reported_with_the_last_vacuum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloat, "LEAST_DEAD", 100)
    fill(400)

    def look() -> dict[str, Finding]:
        """Unless the server's own vacuum came between."""
        Task.objects.update(priority=1)
        Task.objects.update(priority=2)
        fetch(connection, "SELECT pg_stat_force_next_flush()")
        found = {each.subject: each for each in bloat.look_at_tables(connection)}
        return found if found["taskqueue_task"].severity is not Severity.OK else {}

    found = wait_until(look)
    assert found["taskqueue_task"].severity is Severity.WARNING
    assert "dead rows beside" in found["taskqueue_task"].seen
    assert "The tables take " in found[""].seen


def test_an_index_that_is_mostly_empty_is_told_with_what_would_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bloat, "LEAST", 200_000)
    fill(8000)
    # Not of other tables: tests before this one may have left theirs mostly empty, for what they
    # wrote was rolled back.
    assert "taskqueue_task_pkey" not in names(bloat.look_at_indexes(connection))
    Task.objects.all()._raw_delete("default")

    def look() -> bool:
        """As soon as nobody sees the rows any more: the server may analyze a table just now."""
        change(connection, "VACUUM (ANALYZE, TRUNCATE false) taskqueue_task")
        return "taskqueue_task_pkey" in names(bloat.look_at_indexes(connection))

    wait_until(look, what="an index that is mostly empty")


def names(findings: Iterator[Finding]) -> list[str]:
    """What is not all right."""
    return [each.subject for each in findings if each.severity is not Severity.OK]


def test_autovacuum_that_is_off_for_a_table_is_a_problem() -> None:
    change(connection, "ALTER TABLE taskqueue_lease SET (autovacuum_enabled = off)")
    try:
        found = {each.subject: each for each in bloat.look_at_tables(connection)}
    finally:
        change(connection, "ALTER TABLE taskqueue_lease RESET (autovacuum_enabled)")
    assert found["taskqueue_lease"].severity is Severity.PROBLEM


def test_settings_of_the_server_that_break_promises_are_found() -> None:
    good = {"fsync": "on", "autovacuum": "on", "synchronous_commit": "local"}
    assert list(of_settings(good)) == []
    bad = {
        "fsync": "off", "autovacuum": "off", "synchronous_commit": "off",
        "default_transaction_isolation": "serializable",
    }  # fmt: skip
    severities = {each.subject: str(each.severity) for each in of_settings(bad)}
    assert severities == {
        "fsync": "problem", "autovacuum": "problem", "synchronous_commit": "warning",
        "default_transaction_isolation": "warning",
    }  # fmt: skip


def test_the_server_says_its_version() -> None:
    first = next(look_at_server(connection))
    assert (first.severity, first.seen.startswith("PostgreSQL ")) == (Severity.OK, True)


def test_a_direct_connection_is_distinguished_from_a_pooled_one() -> None:
    [found] = look_at_pooling(connection)
    assert (found.severity, "a worker would listen" in found.seen) == (Severity.OK, True)
    require_tool(PROGRAM)
    with Pooler(connection.settings_dict, "transaction") as pooler, elsewhere(pooler.port):
        [found] = look_at_pooling(connection)
    assert (found.severity, "through a pooler" in found.seen) == (Severity.INFO, True)


def test_workers_that_poll_are_named() -> None:
    assert list(look_at_listening(connection)) == []
    make_worker("w1", listens=True)
    make_worker("w2", listens=None)
    [found] = look_at_listening(connection)
    assert (found.severity, found.seen) == (Severity.OK, "Workers that listen: 1.")
    make_worker("w3", listens=False)
    make_worker("gone", listens=False, status="stopped")
    [found] = look_at_listening(connection)
    assert (found.severity, found.subject) == (Severity.INFO, "w3")
    assert found.seen == "Workers that poll because they connect through a pooler: w3."


def test_a_silent_server_is_reported_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    monkeypatch.setattr(examination, "LONGEST_SILENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, elsewhere(silent.getsockname()[1]):
        found = [each for each in doctor.examine() if each.check != "settings"]
    [told] = found
    assert (told.check, told.severity) == ("database", Severity.PROBLEM)
    assert told.seen.endswith("The database has not answered within 0.2 s.")
    assert connection.connection is None
