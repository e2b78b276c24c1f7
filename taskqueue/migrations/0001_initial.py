"""The tables of taskqueue."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db import migrations, models

from taskqueue.core.uuid7 import uuid7
from taskqueue.migrations._event_triggers import create_event_triggers, drop_event_triggers
from taskqueue.migrations._light_checks import lighten_checks
from taskqueue.models.parts import DatabaseClock, ManyOf

TASK_STATUSES = [
    "blocked", "scheduled", "ready", "running", "retrying", "succeeded", "failed", "cancelled",
]  # fmt: skip
PENDING = ["blocked", "ready", "retrying", "scheduled"]
UNFINISHED = [*PENDING, "running"]
FINISHED = ["cancelled", "failed", "succeeded"]
LEASE_STATUSES = ["running", "succeeded", "failed", "lost", "stopped", "returned"]
OPERATION_STATUSES = ["waiting", "running", "finished", "failed", "cancelled"]
OCCURRENCE_STATUSES = ["waiting", "enqueued", "ended", "skipped"]
STEP_KINDS = ["task", "map", "workflow", "join"]
STEP_STATUSES = ["waiting", "running", "succeeded", "failed", "skipped", "cancelled"]
WORKFLOW_STATUSES = ["running", "stopping", "compensating", "succeeded", "failed", "cancelled"]
TURNED_AWAY = ["debounced", "throttled", "dropped", "refused", "replaced"]
WORKFLOW_COUNTED = ["succeeded", "failed", "cancelled", "repaired"]
AFTER = ["succeeded", "failed", "ended"]
WORKER_STATUSES = ["running", "quiet", "stopping", "stopped", "lost"]
PER = ["key", "host", "worker", "queue"]
PARTITION_STATES = ["open", "waiting", "empty", "halted"]
SUBSCRIBERS = ["endpoint", "handler", "stream"]
EVENT_KINDS = [
    "task.enqueued", "task.started", "task.progressed", "task.retrying", "task.succeeded",
    "task.failed", "task.cancelled", "task.lost", "task.stopping", "workflow.started",
    "workflow.succeeded", "workflow.failed", "workflow.cancelled", "step.failed",
    "schedule.skipped", "schedule.paused", "queue.paused", "queue.resumed", "worker.started",
    "worker.quiet", "worker.stopped", "worker.lost", "operation.finished", "alert.raised",
    "alert.cleared",
]  # fmt: skip
MISSED = ["skip", "latest", "all", "window"]
DISABLED_FOR = ["", "person", "gone", "failing"]
DELIVERY_STATUSES = ["waiting", "delivered", "failed", "cancelled"]
OVERLAP = ["skip", "queue_one", "queue_all", "cancel", "allow"]
ALERT_KINDS = [
    "failure", "failure_rate", "queue_latency", "queue_depth", "queue_unserved", "queue_stalled",
    "no_worker", "worker_lost", "worker_trouble", "wedged", "schedule_missed", "schedule_paused",
    "schedule_trouble", "workflow_failed", "workflow_slow", "limit_saturated",
    "failure_jump", "new_error", "long_run", "queue_growing", "workers_absent", "tags_absent",
    "parked", "doctor", "heartbeat",
]  # fmt: skip
ALERT_SCOPES = ["all", "queue", "name", "schedule", "workflow", "worker", "limit"]
INCIDENT_STATUSES = ["pending", "firing", "ended"]
RULE_SOURCES = ["code", "row"]
PAGES = [
    ("Dashboard", "dashboard", "taskqueue.rollup"),
    ("Performance", "performance", "taskqueue.rollup"),
    ("Failure", "failures", "taskqueue.task"),
]
FIGURES = [
    ("succeeded", models.PositiveBigIntegerField(default=0)),
    ("failed", models.PositiveBigIntegerField(default=0)),
    ("lost", models.PositiveBigIntegerField(default=0)),
    ("stopped", models.PositiveBigIntegerField(default=0)),
    ("returned", models.PositiveBigIntegerField(default=0)),
    ("tasks_succeeded", models.PositiveBigIntegerField(default=0)),
    ("tasks_failed", models.PositiveBigIntegerField(default=0)),
    ("tasks_cancelled", models.PositiveBigIntegerField(default=0)),
    ("run_seconds", models.FloatField(default=0.0)),
    ("run_times", models.JSONField(default=dict)),
    ("wait_seconds", models.FloatField(default=0.0)),
    ("wait_times", models.JSONField(default=dict)),
]


def _word(words: list[str], *, max_length: int = 10, **options: Any) -> models.CharField[str, str]:
    choices = [(word, word) for word in words]
    return models.CharField(choices=choices, max_length=max_length, **options)


def _key(*columns: str) -> models.CompositePrimaryKey:
    return models.CompositePrimaryKey(
        *columns, blank=True, editable=False, primary_key=True, serialize=False
    )


def _reference(to: str, on_delete: Any, **options: Any) -> models.ForeignKey[Any, Any]:
    to = f"taskqueue.{to}"
    return models.ForeignKey(to, on_delete, db_constraint=False, db_index=False, **options)


def _one_of(column: str, words: list[str], *, name: str) -> models.CheckConstraint:
    return models.CheckConstraint(condition=models.Q((f"{column}__in", words)), name=name)


def _known(unfinished: list[str], finished: list[str], *, name: str) -> models.CheckConstraint:
    condition = models.Q(finished_at=None, status__in=unfinished) | models.Q(
        finished_at__isnull=False, status__in=finished
    )
    return models.CheckConstraint(condition=condition, name=name)


def tune_postgresql(apps: Any, schema_editor: Any) -> None:
    """Room for heap-only updates, and vacuuming by what changed rather than by what is there.

    A queue's tables change as fast as they grow: with the usual fifth of a large table left to
    rot, every claim would step over what earlier ones left behind.
    """
    if schema_editor.connection.vendor != "postgresql":
        return
    for table in ("task", "lease"):
        schema_editor.execute(
            f"ALTER TABLE taskqueue_{table} SET (fillfactor = 85, "
            "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, "
            "autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)"
        )
    for table in ("worker", "rollup", "limiter", "partition"):
        schema_editor.execute(f"ALTER TABLE taskqueue_{table} SET (fillfactor = 50)")
    for table in ("workflow", "step"):
        schema_editor.execute(f"ALTER TABLE taskqueue_{table} SET (fillfactor = 70)")
    # Written by every enqueue, and never looked up: an index would cost as much as the row.
    # Without one, the server must be told what stands for a deleted row where it replicates.
    schema_editor.execute(
        "ALTER TABLE taskqueue_arrival DROP CONSTRAINT taskqueue_arrival_pkey, "
        "REPLICA IDENTITY FULL"
    )
    # Events are found by their numbers. Those that have none yet are in an index of their own, and
    # each has to enter this one twice: once when it is written, once when it gets its number.
    schema_editor.execute(
        "ALTER TABLE taskqueue_event DROP CONSTRAINT taskqueue_event_pkey, REPLICA IDENTITY FULL"
    )
    # A row of it is written once, read once and deleted: whole, if it fits into a page.
    schema_editor.execute(
        "ALTER TABLE taskqueue_eventbatch SET (toast_tuple_target = 8160, "
        "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, "
        "autovacuum_vacuum_cost_delay = 0)"
    )
    for column in ("task_ids", "attempts", "seconds"):
        schema_editor.execute(
            f"ALTER TABLE taskqueue_eventbatch ALTER COLUMN {column} SET STORAGE EXTERNAL"
        )
    # Rows come and go here all the time, and few stay.
    for table in ("arrival", "event", "limitnote", "slot"):
        schema_editor.execute(
            f"ALTER TABLE taskqueue_{table} SET (autovacuum_vacuum_scale_factor = 0, "
            "autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0)"
        )


# The enqueue of a task that any worker may run at once. In a procedure the server keeps its plans for
# the session, whoever is served by it: planning took a third of the time of the same statement as
# text, and what a client prepares for itself does not survive a pooler. By CALL, since some proxies
# send what begins with SELECT to a standby.
#
# The NOTIFY goes out only where a worker sleeps: it takes a lock at commit that all databases of the
# server share. The parameters are named like the columns.
CREATE_ENQUEUE = """
CREATE OR REPLACE PROCEDURE taskqueue_enqueue(
    id uuid, args jsonb, kwargs jsonb, name text, queue_name text, priority integer, options jsonb,
    metadata jsonb, max_attempts integer, max_crashes integer, crash_delay interval,
    lease_duration interval, retention interval, enqueued_at timestamptz, INOUT microseconds bigint
) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO taskqueue_task (
        id, args, kwargs, name, queue_name, priority, options, metadata, max_attempts, max_crashes,
        crash_delay, lease_duration, retention, status, run_after, ready_at, enqueued_at
    ) VALUES (
        id, args, kwargs, name, queue_name, priority, options, metadata, max_attempts, max_crashes,
        crash_delay, lease_duration, retention, 'ready', enqueued_at, enqueued_at, enqueued_at
    );
    INSERT INTO taskqueue_arrival (id, queue_name, name, number) VALUES (0, queue_name, name, 1);
    IF EXISTS (SELECT FROM taskqueue_worker WHERE is_idle) THEN
        PERFORM pg_notify('taskqueue', queue_name);
    END IF;
    microseconds := EXTRACT(epoch FROM enqueued_at) * 1000000;
END $$
"""


def create_enqueue(apps: Any, schema_editor: Any) -> None:
    """The procedure of an enqueue, on PostgreSQL."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(CREATE_ENQUEUE)


def drop_enqueue(apps: Any, schema_editor: Any) -> None:
    """Undo `create_enqueue`."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP PROCEDURE taskqueue_enqueue")


# Whatever makes a task of a partition ready, or ends a lease that takes places, also writes a note
# of it: by triggers, so that no statement can forget it. Their conditions are all that other tasks
# and leases pay. The end of a task matters only to those behind it in its sequence.
# PostgreSQL reads a condition anew for each statement: that of an enqueue is short, and its function
# asks the rest.
IS_NEWS = """NEW.route = 2 AND (
        NEW.status = 'ready' OR NEW.finished_at IS NOT NULL AND {in_sequence}
    )"""
# ruff: noqa: S608  (of constants)
TRIGGERS = {
    "postgresql": [
        f"""
CREATE FUNCTION taskqueue_note_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF {IS_NEWS.format(in_sequence="NEW.limits ? 'sequence'")} THEN
        INSERT INTO taskqueue_limitnote (subject) VALUES (NEW.partition);
    END IF;
    RETURN NULL;
END $$
""",
        """
CREATE TRIGGER taskqueue_note_new AFTER INSERT ON taskqueue_task
FOR EACH ROW WHEN (NEW.route = 2)
EXECUTE FUNCTION taskqueue_note_task()
""",
        f"""
CREATE TRIGGER taskqueue_note_change AFTER UPDATE OF status, partition, priority ON taskqueue_task
FOR EACH ROW WHEN ({IS_NEWS.format(in_sequence="NEW.limits ? 'sequence'")})
EXECUTE FUNCTION taskqueue_note_task()
""",
        """
CREATE FUNCTION taskqueue_free_places() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH freed AS (
        DELETE FROM taskqueue_slot WHERE lease_id = OLD.id RETURNING limiter_id
    )
    INSERT INTO taskqueue_limitnote (subject) SELECT limiter_id FROM freed;
    RETURN NULL;
END $$
""",
        """
CREATE TRIGGER taskqueue_free_places
AFTER UPDATE OF finished_at ON taskqueue_lease
FOR EACH ROW WHEN (
    OLD.is_limited AND NEW.is_limited AND OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
)
EXECUTE FUNCTION taskqueue_free_places()
""",
        """
CREATE TRIGGER taskqueue_free_places_of_withdrawn
AFTER DELETE ON taskqueue_lease
FOR EACH ROW WHEN (OLD.is_limited AND OLD.finished_at IS NULL)
EXECUTE FUNCTION taskqueue_free_places()
""",
    ],
    "sqlite": [
        f"""
CREATE TRIGGER taskqueue_note_{name} AFTER {event} ON taskqueue_task
WHEN {IS_NEWS.format(in_sequence="json_extract(NEW.limits, '$.sequence') IS NOT NULL")}
BEGIN
    INSERT INTO taskqueue_limitnote (subject) VALUES (NEW.partition);
END
"""
        for name, event in (("new", "INSERT"), ("change", "UPDATE OF status, partition, priority"))
    ]
    + [
        f"""
CREATE TRIGGER taskqueue_free_places_{name} AFTER {event} ON taskqueue_lease
WHEN OLD.is_limited AND OLD.finished_at IS NULL {further}
BEGIN
    INSERT INTO taskqueue_limitnote (subject)
    SELECT limiter_id FROM taskqueue_slot WHERE lease_id = OLD.id;
    DELETE FROM taskqueue_slot WHERE lease_id = OLD.id;
END
"""
        for name, event, further in (
            ("ended", "UPDATE OF finished_at", "AND NEW.finished_at IS NOT NULL"),
            ("withdrawn", "DELETE", ""),
        )
    ],
}


def create_triggers(apps: Any, schema_editor: Any) -> None:
    """The triggers that write notes for limits."""
    for statement in TRIGGERS[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop_triggers(apps: Any, schema_editor: Any) -> None:
    """Undo `create_triggers`, before SQLite makes tables anew whose triggers write to others."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION taskqueue_note_task, taskqueue_free_places CASCADE")
        return
    for name in ("note_new", "note_change", "free_places_ended", "free_places_withdrawn"):
        schema_editor.execute(f"DROP TRIGGER IF EXISTS taskqueue_{name}")


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Arrival",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("queue_name", models.CharField(max_length=100)),
                ("name", models.CharField(max_length=255)),
                ("number", models.IntegerField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Audit",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=DatabaseClock())),
                ("actor", models.CharField(default="", max_length=150)),
                ("noun", models.CharField(default="", max_length=10)),
                ("verb", models.CharField(max_length=30)),
                ("subject", models.CharField(db_index=True, max_length=255)),
                ("reason", models.CharField(default="", max_length=1000)),
                ("before", models.CharField(default="", max_length=10)),
                ("detail", models.CharField(db_default="", max_length=1000)),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Export",
            fields=[
                ("number", models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ("token", models.UUIDField(null=True)),
                ("actor", models.CharField(default="", max_length=150)),
                ("process", models.CharField(default="", max_length=255)),
                ("expires_at", models.DateTimeField(null=True)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="SavedSearch",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("query", models.TextField()),
                ("owner", models.CharField(max_length=150)),
                ("owner_name", models.CharField(default="", max_length=150)),
                ("is_shared", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("changed_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "verbose_name": "saved search",
                "verbose_name_plural": "saved searches",
                "default_permissions": (),
                "permissions": [
                    ("manage_searches", "Can share searches, and change those of others")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "name"), name="taskqueue_search_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("actor", models.CharField(max_length=150)),
                ("key", models.CharField(max_length=255)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(default=0)),
                ("headers", models.JSONField(default=dict)),
                ("body", models.TextField(default="")),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["created_at"], name="taskqueue_idempotency_old")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("actor", "key"), name="taskqueue_idempotency_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Operation",
            fields=[
                ("id", models.UUIDField(default=uuid7, primary_key=True, serialize=False)),
                ("verb", models.CharField(max_length=30)),
                ("query", models.TextField(default="")),
                ("chosen", models.JSONField(default=dict)),
                ("arguments", models.JSONField(default=dict)),
                ("status", _word(OPERATION_STATUSES, default="waiting")),
                ("expected", models.PositiveBigIntegerField(null=True)),
                ("matched", models.PositiveBigIntegerField(default=0)),
                ("done", models.PositiveBigIntegerField(default=0)),
                ("next_after", models.UUIDField(null=True)),
                ("last_id", models.UUIDField(null=True)),
                ("requested_by", models.CharField(default="", max_length=150)),
                ("requester", models.CharField(default="", max_length=150)),
                ("reason", models.CharField(default="", max_length=1000)),
                ("error", models.TextField(default="")),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("starts_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("progressed_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "operation",
                "verbose_name_plural": "operations",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(finished_at__isnull=True),
                        fields=["id"],
                        name="taskqueue_operation_open",
                    )
                ],
                "constraints": [
                    _one_of("status", OPERATION_STATUSES, name="taskqueue_operation_status")
                ],
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100, unique=True)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("paused_at", models.DateTimeField(null=True)),
                ("paused_until", models.DateTimeField(null=True)),
                ("paused_by", models.CharField(db_default="", max_length=150)),
                ("pause_reason", models.CharField(db_default="", max_length=1000)),
                ("limiter_id", models.UUIDField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "permissions": [("control_queues", "Can pause and resume queues")],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(paused_at__isnull=False)
                        | models.Q(limiter_id__isnull=False),
                        fields=["name"],
                        name="taskqueue_queue_left_out",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255, unique=True)),
                ("paused_at", models.DateTimeField()),
                ("paused_until", models.DateTimeField(null=True)),
                ("paused_by", models.CharField(default="", max_length=150)),
                ("pause_reason", models.CharField(default="", max_length=1000)),
            ],
            options={
                "verbose_name": "pause",
                "verbose_name_plural": "pauses",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255, unique=True)),
                ("task_name", models.CharField(max_length=255)),
                ("is_workflow", models.BooleanField(default=False)),
                ("rule", models.JSONField()),
                ("args", models.JSONField(default=list)),
                ("kwargs", models.JSONField(default=dict)),
                ("options", models.JSONField(default=dict)),
                ("request", models.JSONField()),
                ("missed", _word(MISSED, default="latest")),
                ("missed_window", models.DurationField(null=True)),
                ("overlap", _word(OVERLAP, default="skip")),
                ("pause_after_failures", models.PositiveIntegerField(null=True)),
                ("jitter", models.DurationField(null=True)),
                ("max_runs", models.PositiveIntegerField(null=True)),
                ("run_count", models.PositiveIntegerField(default=0)),
                ("is_enabled", models.BooleanField(default=True)),
                ("source", _word(["code", "row"], default="row")),
                ("declared_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("paused_by", models.CharField(default="", max_length=150)),
                ("pause_reason", models.CharField(default="", max_length=1000)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("changed_at", models.DateTimeField(db_default=DatabaseClock())),
                ("served_until", models.DateTimeField()),
                ("next_at", models.DateTimeField(null=True)),
                ("failures_in_row", models.PositiveIntegerField(default=0)),
                ("trouble", models.TextField(default="")),
                ("last_nominal_at", models.DateTimeField(null=True)),
                ("last_status", models.CharField(default="", max_length=10)),
                ("last_finished_at", models.DateTimeField(null=True)),
                ("last_return_value", models.JSONField(null=True)),
                ("last_error", models.TextField(default="")),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "permissions": [
                    (
                        "edit_schedules",
                        "Can pause and delete schedules; with enqueue also create, edit and run them",
                    )
                ],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            is_enabled=True, next_at__isnull=False, removed_at__isnull=True
                        ),
                        fields=["next_at"],
                        name="taskqueue_schedule_next",
                    )
                ],
                "constraints": [
                    _one_of("missed", MISSED, name="taskqueue_schedule_missed"),
                    _one_of("overlap", OVERLAP, name="taskqueue_schedule_overlap"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=150, unique=True)),
                ("incarnation", models.UUIDField(default=uuid4)),
                ("host", models.CharField(max_length=255)),
                ("pid", models.PositiveIntegerField()),
                ("status", _word(WORKER_STATUSES, default="running")),
                ("queues", models.JSONField(default=dict)),
                ("tags", models.JSONField(default=list)),
                ("queue_slots", models.JSONField(default=dict)),
                ("definition_slots", models.JSONField(default=dict)),
                ("queue_order", models.JSONField(default=list)),
                ("is_strict", models.BooleanField(default=False)),
                ("concurrency", models.PositiveIntegerField(default=1)),
                ("pool", models.CharField(default="process", max_length=10)),
                ("versions", models.JSONField(default=dict)),
                ("lease_seconds", models.FloatField(default=30.0)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("stopped_at", models.DateTimeField(null=True)),
                ("running_leases", models.PositiveIntegerField(default=0)),
                ("memory_bytes", models.PositiveBigIntegerField(null=True)),
                ("cpu_percent", models.FloatField(null=True)),
                ("is_idle", models.BooleanField(default=False)),
                ("listens", models.BooleanField(null=True)),
                ("trouble", models.TextField(default="")),
                ("schedules", models.JSONField(null=True)),
                ("request", _word(["quiet", "stop", "kill"], default="")),
                ("requested_at", models.DateTimeField(null=True)),
                ("requested_by", models.CharField(default="", max_length=150)),
                ("request_reason", models.CharField(default="", max_length=1000)),
                ("request_seen_at", models.DateTimeField(null=True)),
                ("wanted", models.JSONField(default=dict)),
                ("wanted_at", models.DateTimeField(null=True)),
                ("wanted_by", models.CharField(default="", max_length=150)),
                ("wanted_reason", models.CharField(default="", max_length=1000)),
                ("wanted_seen_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(is_idle=True),
                        fields=["id"],
                        name="taskqueue_worker_idle",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Rollup",
            fields=[
                *FIGURES,
                ("id", models.UUIDField(default=uuid4, primary_key=True, serialize=False)),
                ("resolution", models.PositiveIntegerField(default=0)),
                ("starts_at", models.DateTimeField(db_default=DatabaseClock())),
                ("queue_name", models.CharField(max_length=100)),
                ("name", models.CharField(max_length=255)),
                ("slowest_seconds", models.FloatField(default=0.0)),
                ("slowest_task_id", models.UUIDField(null=True)),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["starts_at"], name="taskqueue_rollup_starts"),
                    models.Index(fields=["resolution", "starts_at"], name="taskqueue_rollup_merge"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(resolution__gt=0),
                        fields=("resolution", "starts_at", "queue_name", "name"),
                        name="taskqueue_rollup_span",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Total",
            fields=[
                *FIGURES,
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(choices=[("queue", "queue"), ("name", "name")], max_length=5),
                ),
                ("label", models.CharField(max_length=255)),
                ("enqueued", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "label"), name="taskqueue_total_label")
                ],
            },
        ),
        migrations.CreateModel(
            name="Workflow",
            fields=[
                ("id", models.UUIDField(default=uuid7, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("version", models.CharField(default="", max_length=100)),
                ("status", _word(WORKFLOW_STATUSES, max_length=12, default="running")),
                ("format", models.SmallIntegerField()),
                ("args", models.JSONField(default=list)),
                ("kwargs", models.JSONField(default=dict)),
                ("context", models.JSONField(default=dict)),
                ("last", models.JSONField(default=list)),
                ("parent_step_id", models.BigIntegerField(null=True)),
                ("parent_place", models.IntegerField(null=True)),
                ("nominal_at", models.DateTimeField(null=True)),
                ("unique_key", models.CharField(max_length=255, null=True)),
                ("holds_unique_key", models.BooleanField(default=False)),
                ("open_steps", models.IntegerField(default=0)),
                ("total_steps", models.IntegerField(default=0)),
                ("members", models.IntegerField(default=0)),
                ("deadline_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("stop_requested_at", models.DateTimeField(null=True)),
                ("stop_requested_by", models.CharField(default="", max_length=150)),
                ("stop_reason", models.CharField(default="", max_length=1000)),
                ("stopped_step_id", models.BigIntegerField(default=0)),
                ("stopped_place", models.IntegerField(default=-1)),
                ("stops_again_at", models.DateTimeField(null=True)),
                ("callbacks", models.JSONField(default=list)),
                ("fail_fast", models.BooleanField(default=False)),
                ("error", models.JSONField(null=True)),
                ("failed_step", models.CharField(default="", max_length=100)),
                ("trouble", models.TextField(default="")),
                ("retention", models.DurationField(null=True)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("moved_at", models.DateTimeField(db_default=DatabaseClock())),
                ("recount_at", models.DateTimeField(db_default=DatabaseClock())),
                ("finished_at", models.DateTimeField(null=True)),
                ("prune_after", models.DateTimeField(null=True)),
                (
                    "schedule",
                    _reference("schedule", models.DO_NOTHING, null=True, related_name="+"),
                ),
            ],
            options={
                "verbose_name": "workflow",
                "verbose_name_plural": "workflows",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["status", "id"], name="taskqueue_workflow_status"),
                    models.Index(
                        condition=models.Q(("parent_step_id__isnull", False)),
                        fields=["parent_step_id", "status"],
                        name="taskqueue_workflow_parent",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("deadline_at__isnull", False), ("finished_at__isnull", True)
                        ),
                        fields=["deadline_at"],
                        name="taskqueue_workflow_deadline",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("finished_at__isnull", True), ("paused_at__isnull", True)
                        ),
                        fields=["recount_at"],
                        name="taskqueue_workflow_recount",
                    ),
                    models.Index(
                        condition=models.Q(("prune_after__isnull", False)),
                        fields=["prune_after"],
                        name="taskqueue_workflow_prune",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("holds_unique_key", True)),
                        fields=("unique_key", "name"),
                        name="taskqueue_workflow_unique_key",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("parent_place__isnull", False)),
                        fields=("parent_step_id", "parent_place"),
                        name="taskqueue_workflow_place",
                    ),
                    _one_of("status", WORKFLOW_STATUSES, name="taskqueue_workflow_status_known"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("open_steps__gte", 0), ("total_steps__gte", models.F("open_steps"))
                        ),
                        name="taskqueue_workflow_steps",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("kind", _word(STEP_KINDS)),
                ("status", _word(STEP_STATUSES, default="waiting")),
                ("waits", models.IntegerField(default=0)),
                ("taken", models.IntegerField(default=0)),
                ("cancels", models.IntegerField(default=0)),
                ("members", models.IntegerField(null=True)),
                ("released", models.IntegerField(default=0)),
                ("ended", models.IntegerField(default=0)),
                ("failures", models.IntegerField(default=0)),
                ("held", models.IntegerField(default=0)),
                ("reopen_from", models.IntegerField(null=True)),
                ("reopens_all", models.BooleanField(default=False)),
                ("counted_at", models.DateTimeField(null=True)),
                ("concurrency", models.IntegerField(null=True)),
                ("tolerate", models.FloatField(default=0)),
                ("tolerated", models.IntegerField(default=0)),
                ("is_due", models.BooleanField(default=False)),
                ("on_failure", _word(["fail", "continue"], default="fail")),
                ("when", models.JSONField(null=True)),
                ("request", models.JSONField(default=dict)),
                ("inputs", models.JSONField(default=list)),
                ("compensate", models.JSONField(null=True)),
                ("parent_step_id", models.BigIntegerField(null=True)),
                ("parent_place", models.IntegerField(null=True)),
                ("compensates_id", models.BigIntegerField(null=True)),
                ("released_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("reason", models.CharField(default="", max_length=1000)),
                (
                    "workflow",
                    _reference("workflow", models.DO_NOTHING, related_name="steps"),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_due", True)),
                        fields=["workflow"],
                        name="taskqueue_step_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workflow", "name"), name="taskqueue_step_name"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("parent_step_id__isnull", False)),
                        fields=("parent_step_id", "parent_place"),
                        name="taskqueue_step_parent",
                    ),
                    _one_of("status", STEP_STATUSES, name="taskqueue_step_status"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.UUIDField(default=uuid7, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("queue_name", models.CharField(default="default", max_length=100)),
                ("status", _word(TASK_STATUSES, default="ready")),
                ("priority", models.SmallIntegerField(default=0)),
                ("run_after", models.DateTimeField(db_default=DatabaseClock())),
                ("args", models.JSONField(default=list)),
                ("kwargs", models.JSONField(default=dict)),
                ("options", models.JSONField(default=dict)),
                ("metadata", models.JSONField(default=dict)),
                ("attempt", models.IntegerField(db_default=0, default=0)),
                ("failures", models.IntegerField(db_default=0, default=0)),
                ("crashes", models.IntegerField(db_default=0, default=0)),
                ("max_attempts", models.IntegerField(default=1)),
                ("max_crashes", models.IntegerField(default=3)),
                ("crash_delay", models.DurationField()),
                ("deadline_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("lease_duration", models.DurationField(null=True)),
                ("ping_interval", models.DurationField(null=True)),
                ("retention", models.DurationField(null=True)),
                ("keep_last", models.IntegerField(null=True)),
                ("unique_key", models.CharField(max_length=255, null=True)),
                ("unique_scope", models.CharField(db_default="", max_length=255)),
                ("unique_for", models.CharField(db_default="", default="", max_length=10)),
                ("unique_until", models.DateTimeField(null=True)),
                ("holds_unique_key", models.BooleanField(db_default=False, default=False)),
                ("route", models.SmallIntegerField(db_default=0)),
                ("workers", models.IntegerField(db_default=1)),
                ("worker_names", models.JSONField(null=True)),
                ("pinned_to", models.CharField(db_default="", max_length=150)),
                ("broadcast", models.BooleanField(db_default=False)),
                ("open_slots", models.IntegerField(db_default=1)),
                ("running_leases", models.IntegerField(db_default=0)),
                ("successes", models.IntegerField(db_default=0)),
                ("partition", models.UUIDField(null=True)),
                ("limits", models.JSONField(null=True)),
                ("nominal_at", models.DateTimeField(null=True)),
                ("place", models.IntegerField(null=True)),
                ("attempts_before_retry", models.IntegerField(db_default=0)),
                ("return_value", models.JSONField(null=True)),
                ("error_class", models.CharField(db_default="", default="", max_length=255)),
                ("error_message", models.TextField(db_default="", default="")),
                ("enqueued_at", models.DateTimeField(db_default=DatabaseClock())),
                ("ready_at", models.DateTimeField(null=True)),
                ("parked_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("prune_after", models.DateTimeField(null=True)),
                (
                    "retry_of",
                    _reference("task", models.DO_NOTHING, null=True, related_name="retries"),
                ),
                (
                    "schedule",
                    _reference("schedule", models.DO_NOTHING, null=True, related_name="tasks"),
                ),
                ("step", _reference("step", models.DO_NOTHING, null=True, related_name="tasks")),
            ],
            options={
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
                "permissions": [
                    ("view_arguments", "Can view arguments that cannot be redacted"),
                    ("enqueue", "Can enqueue tasks"),
                    ("operate", "Can retry, cancel, reschedule and change tasks"),
                    ("stop", "Can stop running tasks and workers"),
                    ("purge", "Can delete tasks"),
                ],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        fields=["queue_name", "-priority", "run_after", "id"],
                        condition=models.Q(route=0, status="ready"),
                        name="taskqueue_task_claim",
                    ),
                    models.Index(
                        fields=["pinned_to", "queue_name", "-priority", "run_after", "id"],
                        condition=models.Q(route=1, status__in=["ready", "running"]),
                        name="taskqueue_task_apart",
                    ),
                    models.Index(
                        fields=["partition", "-priority", "run_after", "id"],
                        condition=models.Q(route=2, status="ready"),
                        name="taskqueue_task_partition",
                    ),
                    models.Index(
                        condition=models.Q(retry_of__isnull=False),
                        fields=["retry_of"],
                        name="taskqueue_task_retry_of",
                    ),
                    models.Index(
                        condition=models.Q(status__in=["retrying", "scheduled"]),
                        fields=["run_after"],
                        name="taskqueue_task_promote",
                    ),
                    models.Index(
                        condition=models.Q(deadline_at__isnull=False, status__in=PENDING),
                        fields=["deadline_at"],
                        name="taskqueue_task_deadline",
                    ),
                    models.Index(
                        condition=models.Q(expires_at__isnull=False, status__in=PENDING),
                        fields=["expires_at"],
                        name="taskqueue_task_expire",
                    ),
                    models.Index(
                        condition=models.Q(finished_at__isnull=False),
                        fields=["status", "finished_at", "id"],
                        name="taskqueue_task_ended",
                    ),
                    models.Index(
                        condition=models.Q(status="failed"),
                        fields=["name", "error_class", "finished_at", "id"],
                        name="taskqueue_task_failed",
                    ),
                    models.Index(
                        condition=models.Q(status__in=["blocked", "retrying", "scheduled"]),
                        fields=["status", "id"],
                        name="taskqueue_task_waiting",
                    ),
                    models.Index(
                        condition=models.Q(prune_after__isnull=False),
                        fields=["prune_after"],
                        name="taskqueue_task_prune",
                    ),
                    models.Index(
                        condition=models.Q(finished_at__isnull=False, keep_last__isnull=False),
                        fields=["name", "finished_at", "id"],
                        name="taskqueue_task_kept",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(holds_unique_key=True),
                        fields=("unique_key", "unique_scope"),
                        name="taskqueue_task_unique_key",
                    ),
                    _known(UNFINISHED, FINISHED, name="taskqueue_task_status"),
                    models.CheckConstraint(
                        condition=models.Q(priority__range=(-100, 100)),
                        name="taskqueue_task_priority",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            workers__gte=models.F("running_leases") + models.F("successes"),
                            running_leases__gte=0,
                            successes__gte=0,
                            open_slots__gte=0,
                        ),
                        name="taskqueue_task_workers",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="schedule",
            name="last_task",
            field=_reference("task", models.DO_NOTHING, null=True, related_name="+"),
        ),
        migrations.AddField(
            model_name="schedule",
            name="last_workflow",
            field=_reference("workflow", models.DO_NOTHING, null=True, related_name="+"),
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("attempt", models.IntegerField()),
                ("status", _word(LEASE_STATUSES, default="running")),
                ("claimed_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("is_shared", models.BooleanField(db_default=False)),
                ("is_limited", models.BooleanField(db_default=False)),
                ("return_value", models.JSONField(null=True)),
                ("retry_at", models.DateTimeField(null=True)),
                ("stop_requested_at", models.DateTimeField(null=True)),
                ("stop_requested_by", models.CharField(db_default="", default="", max_length=150)),
                ("stop_reason", models.CharField(db_default="", default="", max_length=1000)),
                ("stop_seen_at", models.DateTimeField(null=True)),
                ("progress", models.FloatField(null=True)),
                ("progress_message", models.CharField(db_default="", default="", max_length=1000)),
                ("progress_detail", models.JSONField(null=True)),
                ("progressed_at", models.DateTimeField(null=True)),
                ("checkpoint", models.JSONField(null=True)),
                ("checkpointed_at", models.DateTimeField(null=True)),
                ("wedged_at", models.DateTimeField(null=True)),
                ("error_class", models.CharField(db_default="", default="", max_length=255)),
                ("error_message", models.TextField(db_default="", default="")),
                ("traceback", models.TextField(db_default="", default="")),
                ("task", _reference("task", models.CASCADE, related_name="leases")),
                (
                    "worker",
                    _reference("worker", models.DO_NOTHING, to_field="name", related_name="leases"),
                ),
            ],
            options={
                "verbose_name": "lease",
                "verbose_name_plural": "leases",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(status="running"),
                        fields=["worker"],
                        name="taskqueue_lease_running",
                    ),
                    models.Index(
                        condition=models.Q(status__in=["failed", "lost", "returned", "stopped"]),
                        fields=["status", "id"],
                        name="taskqueue_lease_unsuccessful",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("task", "attempt"), name="taskqueue_lease_attempt"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(is_shared=True, status__in=["running", "succeeded"]),
                        fields=("task", "worker"),
                        name="taskqueue_lease_worker",
                    ),
                    _known(["running"], LEASE_STATUSES[1:], name="taskqueue_lease_status"),
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskLog",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("attempt", models.PositiveIntegerField()),
                ("logged_at", models.DateTimeField()),
                ("level", models.PositiveSmallIntegerField()),
                ("logger", models.CharField(default="", max_length=255)),
                ("message", models.TextField()),
                ("task", _reference("task", models.CASCADE, related_name="logs")),
            ],
            options={
                "verbose_name": "log line",
                "verbose_name_plural": "log lines",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["task", "id"], name="taskqueue_tasklog_task")],
            },
        ),
        migrations.CreateModel(
            name="ResultPart",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("attempt", models.PositiveIntegerField()),
                ("place", models.PositiveIntegerField()),
                ("value", models.JSONField()),
                ("size_so_far", models.PositiveIntegerField()),
                ("written_at", models.DateTimeField()),
                ("task", _reference("task", models.CASCADE, related_name="parts")),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("task", "attempt", "place"), name="taskqueue_resultpart_place"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Occurrence",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("nominal_at", models.DateTimeField()),
                ("nominal_until", models.DateTimeField(null=True)),
                ("count", models.PositiveIntegerField(default=1)),
                ("status", _word(OCCURRENCE_STATUSES)),
                ("reason", models.CharField(default="", max_length=1000)),
                ("task_status", models.CharField(default="", max_length=10)),
                ("requested_by", models.CharField(max_length=150, null=True)),
                ("requested_as", models.UUIDField(null=True)),
                ("request", models.JSONField(null=True)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("enqueued_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="occurrences",
                        to="taskqueue.schedule",
                    ),
                ),
                ("task", _reference("task", models.DO_NOTHING, null=True, related_name="+")),
                (
                    "workflow",
                    _reference("workflow", models.DO_NOTHING, null=True, related_name="+"),
                ),
            ],
            options={
                "verbose_name": "occurrence",
                "verbose_name_plural": "occurrences",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        fields=["status", "schedule", "nominal_at"],
                        name="taskqueue_occurrence_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("schedule", "nominal_at"), name="taskqueue_occurrence_nominal"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(requested_as__isnull=False),
                        fields=("schedule", "requested_as"),
                        name="taskqueue_occurrence_requested",
                    ),
                    _one_of("status", OCCURRENCE_STATUSES, name="taskqueue_occurrence_status"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Dependency",
            fields=[
                ("pk", _key("upstream_id", "downstream_id", "when")),
                ("when", _word(AFTER, default="succeeded")),
                ("downstream", _reference("step", models.DO_NOTHING, related_name="needs")),
                ("upstream", _reference("step", models.DO_NOTHING, related_name="dependants")),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["downstream"], name="taskqueue_dependency_down")],
            },
        ),
        migrations.CreateModel(
            name="StepCalls",
            fields=[
                ("pk", _key("step_id", "lease_id", "first_place")),
                ("lease_id", models.BigIntegerField(default=0)),
                ("first_place", models.IntegerField()),
                ("calls", models.JSONField()),
                ("step", _reference("step", models.DO_NOTHING, related_name="+")),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Stay",
            fields=[
                ("task_id", models.UUIDField(primary_key=True, serialize=False)),
                ("worker_name", models.CharField(max_length=150)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="StepEnd",
            fields=[
                ("subject", models.UUIDField(primary_key=True, serialize=False)),
                ("status", models.CharField(max_length=12)),
                ("number", models.IntegerField(default=1)),
                ("updates", models.JSONField(null=True)),
                ("has_fan", models.BooleanField(default=False)),
                ("step", _reference("step", models.DO_NOTHING, related_name="+")),
                ("workflow", _reference("workflow", models.DO_NOTHING, related_name="+")),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["workflow", "step"], name="taskqueue_stepend_workflow"),
                    models.Index(
                        fields=["workflow", "step"],
                        name="taskqueue_stepend_special",
                        condition=models.Q(
                            ("updates__isnull", False), ("has_fan", True), _connector="OR"
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Member",
            fields=[
                ("pk", _key("step_id", "place")),
                ("place", models.IntegerField()),
                ("task", _reference("task", models.DO_NOTHING, related_name="+")),
                ("step", _reference("step", models.DO_NOTHING, related_name="+")),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="CallCount",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("what", _word(TURNED_AWAY)),
                ("number", models.PositiveBigIntegerField(default=1)),
                ("is_sum", models.BooleanField(default=False)),
            ],
            options={
                "default_permissions": (),
                "constraints": [_one_of("what", TURNED_AWAY, name="taskqueue_callcount_what")],
            },
        ),
        migrations.CreateModel(
            name="WorkflowCount",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("what", _word(WORKFLOW_COUNTED)),
                ("number", models.PositiveBigIntegerField(default=1)),
                ("seconds", models.FloatField(default=0.0)),
                ("is_sum", models.BooleanField(default=False)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    _one_of("what", WORKFLOW_COUNTED, name="taskqueue_workflowcount_what")
                ],
            },
        ),
        migrations.CreateModel(
            name="Collected",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("group", models.CharField(db_column="group_key", max_length=200)),
                ("event", models.TextField()),
                ("size", models.IntegerField()),
                ("collected_at", models.DateTimeField()),
                ("max_size", models.IntegerField()),
                ("max_bytes", models.IntegerField()),
                ("grace", models.FloatField()),
                ("max_delay", models.FloatField()),
                ("spec", models.JSONField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["name", "group", "id"], name="taskqueue_collected_group")
                ],
            },
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("url", models.CharField(max_length=2000)),
                ("description", models.CharField(default="", max_length=255)),
                ("kinds", models.JSONField(default=list)),
                ("names", models.JSONField(default=list)),
                ("queues", models.JSONField(default=list)),
                ("include", models.JSONField(default=list)),
                ("secret", models.CharField(max_length=100)),
                ("previous_secret", models.CharField(default="", max_length=100)),
                ("previous_until", models.DateTimeField(null=True)),
                ("is_enabled", models.BooleanField(default=True)),
                ("disabled_for", _word(DISABLED_FOR, default="")),
                ("failing_since", models.DateTimeField(null=True)),
                ("succeeded_at", models.DateTimeField(null=True)),
                ("created_by", models.CharField(default="", max_length=150)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("changed_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "verbose_name": "webhook endpoint",
                "verbose_name_plural": "webhook endpoints",
                "permissions": [("manage_webhooks", "Can view and manage webhooks")],
                "default_permissions": (),
                "constraints": [
                    _one_of("disabled_for", DISABLED_FOR, name="taskqueue_endpoint_disabled")
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.UUIDField(default=uuid7, primary_key=True, serialize=False)),
                ("endpoint", _reference("endpoint", models.DO_NOTHING, related_name="deliveries")),
                ("seq", models.BigIntegerField(null=True)),
                ("kind", models.CharField(max_length=40)),
                ("payload", models.JSONField(default=dict)),
                ("task", _reference("task", models.DO_NOTHING, related_name="deliveries")),
                ("status", _word(DELIVERY_STATUSES, default="waiting")),
                ("attempts", models.IntegerField(db_default=0)),
                ("answer_status", models.IntegerField(null=True)),
                ("error", models.CharField(db_default="", max_length=255)),
                ("milliseconds", models.IntegerField(null=True)),
                ("answer", models.TextField(db_default="")),
                ("attempted_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "verbose_name": "webhook delivery",
                "verbose_name_plural": "webhook deliveries",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["endpoint", "id"], name="taskqueue_delivery_endpoint"),
                    models.Index(
                        condition=models.Q(status="waiting"),
                        fields=["endpoint", "id"],
                        name="taskqueue_delivery_waiting",
                    ),
                    models.Index(
                        condition=models.Q(status="failed"),
                        fields=["endpoint", "id"],
                        name="taskqueue_delivery_failed",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(seq__isnull=False),
                        fields=("endpoint", "seq"),
                        name="taskqueue_delivery_event",
                    ),
                    _one_of("status", DELIVERY_STATUSES, name="taskqueue_delivery_status"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Limit",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255, unique=True)),
                ("per", _word(PER, default="key")),
                ("concurrency", models.IntegerField(null=True)),
                ("rate", models.IntegerField(null=True)),
                ("seconds", models.FloatField(null=True)),
                ("smooth", models.BooleanField(db_default=False)),
                ("concurrency_override", models.IntegerField(null=True)),
                ("rate_override", models.IntegerField(null=True)),
                ("seconds_override", models.FloatField(null=True)),
                ("changed_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "verbose_name": "limit",
                "verbose_name_plural": "limits",
                "default_permissions": ("view",),
                "constraints": [_one_of("per", PER, name="taskqueue_limit_per")],
            },
        ),
        migrations.CreateModel(
            name="Limiter",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("limit", _reference("limit", models.DO_NOTHING, related_name="limiters")),
                ("key", models.CharField(db_default="", max_length=255)),
                ("starts", models.JSONField(null=True)),
                ("used_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["limit", "id"], name="taskqueue_limiter_limit")],
            },
        ),
        migrations.CreateModel(
            name="Slot",
            fields=[
                ("pk", _key("limiter_id", "lease_id")),
                ("limiter", _reference("limiter", models.DO_NOTHING, related_name="slots")),
                ("lease", _reference("lease", models.DO_NOTHING, related_name="slots")),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["lease"], name="taskqueue_slot_lease")],
            },
        ),
        migrations.CreateModel(
            name="Partition",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("queue_name", models.CharField(max_length=100)),
                ("lane", models.TextField(db_default="")),
                ("limits", models.JSONField(null=True)),
                ("limiters", models.JSONField(default=list)),
                ("state", _word(PARTITION_STATES, default="empty")),
                ("head_priority", models.SmallIntegerField(default=0)),
                ("head_at", models.DateTimeField(null=True)),
                ("rank", models.FloatField(default=0.0)),
                ("waits_for", models.UUIDField(null=True)),
                ("opens_at", models.DateTimeField(null=True)),
                ("holder", models.UUIDField(null=True)),
                ("changed_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(state="open"),
                        fields=["queue_name", "lane", "-head_priority", "rank", "id"],
                        name="taskqueue_partition_open",
                    ),
                    models.Index(
                        condition=models.Q(waits_for__isnull=False),
                        fields=["waits_for", "queue_name", "lane", "-head_priority", "rank", "id"],
                        name="taskqueue_partition_waiting",
                    ),
                    models.Index(
                        condition=models.Q(opens_at__isnull=False),
                        fields=["opens_at"],
                        name="taskqueue_partition_opens",
                    ),
                    models.Index(
                        condition=models.Q(state="halted"),
                        fields=["id"],
                        name="taskqueue_partition_halted",
                    ),
                ],
                "constraints": [
                    _one_of("state", PARTITION_STATES, name="taskqueue_partition_state")
                ],
            },
        ),
        migrations.CreateModel(
            name="LimitCount",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "what",
                    models.CharField(
                        choices=[("repaired", "repaired"), ("saturated", "saturated")],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(db_default="", max_length=255)),
                ("number", models.FloatField(default=0.0)),
                ("counted_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("what", "name"), name="taskqueue_limitcount_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LimitPlan",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255, unique=True)),
                ("plan", models.JSONField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="LimitNote",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subject", models.UUIDField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["subject"], name="taskqueue_limitnote_subject")],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField(null=True)),
                ("kind", _word(EVENT_KINDS, max_length=24)),
                ("at", models.DateTimeField(db_default=DatabaseClock())),
                (
                    "task",
                    _reference("task", models.DO_NOTHING, null=True, related_name="events"),
                ),
                (
                    "workflow",
                    _reference("workflow", models.DO_NOTHING, null=True, related_name="events"),
                ),
                ("name", models.CharField(db_default="", max_length=255)),
                ("queue_name", models.CharField(db_default="", max_length=100)),
                ("worker", models.CharField(db_default="", max_length=150)),
                ("attempt", models.IntegerField(null=True)),
                ("details", models.JSONField(default=dict)),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(seq__isnull=True),
                        fields=["id"],
                        name="taskqueue_event_new",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(seq__isnull=False),
                        fields=("seq",),
                        name="taskqueue_event_seq",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EventBatch",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("kind", _word(EVENT_KINDS, max_length=24)),
                ("at", models.DateTimeField()),
                (
                    "workflow",
                    _reference(
                        "workflow", models.DO_NOTHING, null=True, related_name="event_batches"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("queue_name", models.CharField(max_length=100)),
                ("worker", models.CharField(max_length=150)),
                ("details", models.JSONField()),
                ("number", models.IntegerField()),
                ("task_ids", ManyOf("uuid")),
                ("attempts", ManyOf("integer", null=True)),
                ("seconds", ManyOf("double precision", null=True)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subscriber", _word(SUBSCRIBERS)),
                ("subject", models.CharField(max_length=255)),
                ("place", models.SmallIntegerField(default=0)),
                ("kinds", models.JSONField()),
                ("names", models.JSONField(default=list)),
                ("queues", models.JSONField(default=list)),
                ("task_id", models.UUIDField(null=True)),
                ("workflow_id", models.UUIDField(null=True)),
                ("until", models.DateTimeField(null=True)),
                ("request", models.JSONField(null=True)),
                ("declared_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["task_id"], name="taskqueue_subscription_task")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subscriber", "subject", "place"),
                        name="taskqueue_subscription_subject",
                    ),
                    _one_of("subscriber", SUBSCRIBERS, name="taskqueue_subscription_subscriber"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Audience",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("kinds", models.TextField(default="")),
                ("last_seq", models.BigIntegerField(default=0)),
                ("pruned_seq", models.BigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(id=1), name="taskqueue_audience_one")
                ],
            },
        ),
        migrations.CreateModel(
            name="Examination",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("requested_at", models.DateTimeField(null=True)),
                ("begun_at", models.DateTimeField(null=True)),
                ("examined_at", models.DateTimeField(null=True)),
                ("worker_name", models.CharField(default="", max_length=255)),
                ("host", models.CharField(default="", max_length=255)),
                ("findings", models.JSONField(default=list)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(id=1), name="taskqueue_examination_one"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255, unique=True)),
                ("kind", _word(ALERT_KINDS, max_length=20)),
                ("scope", _word(ALERT_SCOPES, default="all")),
                ("pattern", models.CharField(default="", max_length=255)),
                ("threshold", models.FloatField(null=True)),
                ("window_seconds", models.PositiveIntegerField(null=True)),
                ("for_seconds", models.PositiveIntegerField(null=True)),
                ("repeat_seconds", models.PositiveIntegerField(null=True)),
                ("channels", models.JSONField(default=dict)),
                ("url", models.CharField(default="", max_length=1000)),
                ("is_enabled", models.BooleanField(default=True)),
                ("silenced_until", models.DateTimeField(null=True)),
                ("silenced_by", models.CharField(default="", max_length=150)),
                ("silence_reason", models.CharField(default="", max_length=1000)),
                ("source", _word(RULE_SOURCES, default="row")),
                ("declared_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                ("created_by", models.CharField(default="", max_length=150)),
                ("created_at", models.DateTimeField(db_default=DatabaseClock())),
                ("changed_at", models.DateTimeField(db_default=DatabaseClock())),
                ("next_at", models.DateTimeField(null=True)),
                ("evaluated_at", models.DateTimeField(null=True)),
                ("told_at", models.DateTimeField(null=True)),
                ("trouble", models.CharField(default="", max_length=1000)),
                ("failing_since", models.DateTimeField(null=True)),
                ("failure", models.CharField(default="", max_length=1000)),
            ],
            options={
                "verbose_name": "alert rule",
                "verbose_name_plural": "alert rules",
                "permissions": [
                    ("manage_alerts", "Can create, change, silence and delete alert rules")
                ],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(next_at__isnull=False),
                        fields=["next_at"],
                        name="taskqueue_alertrule_next",
                    )
                ],
                "constraints": [
                    _one_of("kind", ALERT_KINDS, name="taskqueue_alertrule_kind"),
                    _one_of("scope", ALERT_SCOPES, name="taskqueue_alertrule_scope"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Incident",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "rule",
                    models.ForeignKey(
                        "taskqueue.alertrule",
                        models.CASCADE,
                        db_index=False,
                        related_name="incidents",
                    ),
                ),
                ("subject", models.CharField(max_length=255)),
                ("status", _word(INCIDENT_STATUSES)),
                ("summary", models.CharField(default="", max_length=1000)),
                ("words", models.JSONField(default=dict)),
                ("remedy", models.CharField(default="", max_length=1000)),
                ("value", models.FloatField(null=True)),
                ("count", models.PositiveIntegerField(default=1)),
                ("latest_at", models.DateTimeField(null=True)),
                ("example", models.CharField(default="", max_length=36)),
                ("began_at", models.DateTimeField()),
                ("raised_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("good_looks", models.PositiveSmallIntegerField(default=0)),
                ("notified_at", models.DateTimeField(null=True)),
                ("told_latest_at", models.DateTimeField(null=True)),
                ("announced", models.CharField(default="", max_length=10)),
                ("is_settled", models.BooleanField(default=False)),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_by", models.CharField(default="", max_length=150)),
                ("acknowledge_reason", models.CharField(default="", max_length=1000)),
            ],
            options={
                "verbose_name": "alert",
                "verbose_name_plural": "alerts",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(is_settled=False),
                        fields=["rule"],
                        name="taskqueue_incident_unsettled",
                    ),
                    models.Index(fields=["rule", "id"], name="taskqueue_incident_rule"),
                    models.Index(
                        condition=models.Q(ended_at__isnull=False),
                        fields=["ended_at"],
                        name="taskqueue_incident_ended",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(ended_at__isnull=True),
                        fields=["rule", "subject"],
                        name="taskqueue_incident_open",
                    ),
                    _one_of("status", INCIDENT_STATUSES, name="taskqueue_incident_status"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Depth",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("resolution", models.PositiveIntegerField()),
                ("starts_at", models.DateTimeField()),
                ("queue_name", models.CharField(max_length=100)),
                ("waiting", models.PositiveIntegerField()),
                ("is_capped", models.BooleanField(db_default=False)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("resolution", "starts_at", "queue_name"),
                        name="taskqueue_depth_moment",
                    )
                ],
            },
        ),
        *(
            migrations.CreateModel(
                name=name,
                fields=[],
                options={
                    "verbose_name": words,
                    "verbose_name_plural": words,
                    "proxy": True,
                    "default_permissions": (),
                },
                bases=(base,),
            )
            for name, words, base in PAGES
        ),
        migrations.RunPython(tune_postgresql, migrations.RunPython.noop),
        migrations.RunPython(lighten_checks, migrations.RunPython.noop),
        migrations.RunPython(create_enqueue, drop_enqueue),
        migrations.RunPython(create_triggers, drop_triggers),
        migrations.RunPython(create_event_triggers, drop_event_triggers),
    ]
