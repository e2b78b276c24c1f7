"""The triggers that record changes, and the statements to read what they wrote."""

from __future__ import annotations

COLUMNS = (
    "noun, task_id, attempt, before, after, worker_name, holds_unique_key, expires_at, run_after"
)

# What may not change any more once a lease has ended; `retry_at` may.
_FROZEN = (
    "attempt",
    "status",
    "claimed_at",
    "started_at",
    "expires_at",
    "finished_at",
    "progress",
    "progress_message",
    "progress_detail",
    "checkpoint",
    "error_class",
    "error_message",
    "traceback",
    "return_value",
    "stop_seen_at",
)

_POSTGRESQL_FUNCTIONS = (
    f"""
    CREATE FUNCTION chaos_workflow_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO chaos_change ({COLUMNS}) VALUES (
            'workflow', NEW.id, 0, CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '' END,
            NEW.status, '', false, NULL, NULL);
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE FUNCTION chaos_task_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'INSERT' THEN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'task', NEW.id, NEW.attempt, '', NEW.status, '', NEW.holds_unique_key, NULL, NULL);
        ELSIF TG_OP = 'DELETE' THEN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'task', OLD.id, OLD.attempt, OLD.status, '', '', false, NULL,
                EXTRACT(epoch FROM OLD.run_after));
        ELSE
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'task', NEW.id, GREATEST(OLD.attempt, NEW.attempt), OLD.status, NEW.status, '',
                NEW.holds_unique_key, NULL, EXTRACT(epoch FROM OLD.run_after));
        END IF;
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE FUNCTION chaos_lease_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'INSERT' THEN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'lease', NEW.task_id, NEW.attempt, '', NEW.status, NEW.worker_id, false, NULL,
                NULL);
        ELSE
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'lease', OLD.task_id, OLD.attempt, OLD.status,
                CASE TG_OP WHEN 'UPDATE' THEN NEW.status ELSE '' END, OLD.worker_id, false,
                EXTRACT(epoch FROM OLD.expires_at), NULL);
        END IF;
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE FUNCTION chaos_log_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO chaos_change ({COLUMNS})
        SELECT 'log', NEW.task_id, NEW.attempt, status, status, worker_id, false, NULL, NULL
        FROM taskqueue_lease
        WHERE task_id = NEW.task_id AND attempt = NEW.attempt AND status <> 'running';
        RETURN NULL;
    END $$
    """,
)

TRIGGERS = {
    "postgresql": (
        """
        CREATE TABLE chaos_change (
            number bigserial PRIMARY KEY, at float8 DEFAULT EXTRACT(epoch FROM clock_timestamp()),
            noun text, task_id uuid, attempt int, before text, after text, worker_name text,
            holds_unique_key bool, expires_at float8, run_after float8
        )
        """,
        *_POSTGRESQL_FUNCTIONS,
        """
        CREATE TRIGGER chaos_task_row AFTER INSERT OR DELETE ON taskqueue_task
        FOR EACH ROW EXECUTE FUNCTION chaos_task_change()
        """,
        """
        CREATE TRIGGER chaos_task_status AFTER UPDATE ON taskqueue_task
        FOR EACH ROW WHEN (
            OLD.status <> NEW.status OR OLD.holds_unique_key <> NEW.holds_unique_key
        ) EXECUTE FUNCTION chaos_task_change()
        """,
        """
        CREATE TRIGGER chaos_lease_row AFTER INSERT OR DELETE ON taskqueue_lease
        FOR EACH ROW EXECUTE FUNCTION chaos_lease_change()
        """,
        f"""
        CREATE TRIGGER chaos_lease_status AFTER UPDATE ON taskqueue_lease
        FOR EACH ROW WHEN (
            OLD.status <> NEW.status OR OLD.status <> 'running'
            AND ({", ".join(f"OLD.{name}" for name in _FROZEN)})
                IS DISTINCT FROM ({", ".join(f"NEW.{name}" for name in _FROZEN)})
        ) EXECUTE FUNCTION chaos_lease_change()
        """,
        """
        CREATE TRIGGER chaos_log_row AFTER INSERT ON taskqueue_tasklog
        FOR EACH ROW EXECUTE FUNCTION chaos_log_change()
        """,
        """
        CREATE TRIGGER chaos_workflow_row AFTER INSERT ON taskqueue_workflow
        FOR EACH ROW EXECUTE FUNCTION chaos_workflow_change()
        """,
        """
        CREATE TRIGGER chaos_workflow_status AFTER UPDATE ON taskqueue_workflow
        FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION chaos_workflow_change()
        """,
    ),
    "sqlite": (
        """
        CREATE TABLE chaos_change (
            number integer PRIMARY KEY,
            at text DEFAULT (strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')),
            noun text, task_id text, attempt int, before text, after text, worker_name text,
            holds_unique_key int, expires_at text, run_after text
        )
        """.replace("%%", "%"),
        f"""
        CREATE TRIGGER chaos_task_insert AFTER INSERT ON taskqueue_task BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'task', NEW.id, NEW.attempt, '', NEW.status, '', NEW.holds_unique_key, NULL, NULL);
        END
        """,
        f"""
        CREATE TRIGGER chaos_task_delete AFTER DELETE ON taskqueue_task BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'task', OLD.id, OLD.attempt, OLD.status, '', '', 0, NULL, OLD.run_after);
        END
        """,
        f"""
        CREATE TRIGGER chaos_task_update AFTER UPDATE ON taskqueue_task
        WHEN OLD.status <> NEW.status OR OLD.holds_unique_key <> NEW.holds_unique_key BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'task', NEW.id, max(OLD.attempt, NEW.attempt), OLD.status, NEW.status, '',
                NEW.holds_unique_key, NULL, OLD.run_after);
        END
        """,
        f"""
        CREATE TRIGGER chaos_lease_insert AFTER INSERT ON taskqueue_lease BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'lease', NEW.task_id, NEW.attempt, '', NEW.status, NEW.worker_id, 0, NULL, NULL);
        END
        """,
        f"""
        CREATE TRIGGER chaos_lease_delete AFTER DELETE ON taskqueue_lease BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'lease', OLD.task_id, OLD.attempt, OLD.status, '', OLD.worker_id, 0,
                OLD.expires_at, NULL);
        END
        """,
        f"""
        CREATE TRIGGER chaos_lease_update AFTER UPDATE ON taskqueue_lease
        WHEN OLD.status <> NEW.status OR OLD.status <> 'running'
            AND NOT ({" AND ".join(f"OLD.{name} IS NEW.{name}" for name in _FROZEN)}) BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'lease', OLD.task_id, OLD.attempt, OLD.status, NEW.status, OLD.worker_id, 0,
                OLD.expires_at, NULL);
        END
        """,
        f"""
        CREATE TRIGGER chaos_log_insert AFTER INSERT ON taskqueue_tasklog BEGIN
            INSERT INTO chaos_change ({COLUMNS})
            SELECT 'log', NEW.task_id, NEW.attempt, status, status, worker_id, 0, NULL, NULL
            FROM taskqueue_lease
            WHERE task_id = NEW.task_id AND attempt = NEW.attempt AND status <> 'running';
        END
        """,
        f"""
        CREATE TRIGGER chaos_workflow_insert AFTER INSERT ON taskqueue_workflow BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'workflow', NEW.id, 0, '', NEW.status, '', 0, NULL, NULL);
        END
        """,
        f"""
        CREATE TRIGGER chaos_workflow_update AFTER UPDATE ON taskqueue_workflow
        WHEN OLD.status <> NEW.status BEGIN
            INSERT INTO chaos_change ({COLUMNS}) VALUES (
                'workflow', NEW.id, 0, OLD.status, NEW.status, '', 0, NULL, NULL);
        END
        """,
    ),
}
NO_TRIGGERS = {
    "postgresql": (
        "DROP TRIGGER IF EXISTS chaos_task_row ON taskqueue_task",
        "DROP TRIGGER IF EXISTS chaos_task_status ON taskqueue_task",
        "DROP TRIGGER IF EXISTS chaos_lease_row ON taskqueue_lease",
        "DROP TRIGGER IF EXISTS chaos_lease_status ON taskqueue_lease",
        "DROP TRIGGER IF EXISTS chaos_log_row ON taskqueue_tasklog",
        "DROP TRIGGER IF EXISTS chaos_workflow_row ON taskqueue_workflow",
        "DROP TRIGGER IF EXISTS chaos_workflow_status ON taskqueue_workflow",
        "DROP FUNCTION IF EXISTS chaos_task_change",
        "DROP FUNCTION IF EXISTS chaos_lease_change",
        "DROP FUNCTION IF EXISTS chaos_log_change",
        "DROP FUNCTION IF EXISTS chaos_workflow_change",
        "DROP TABLE IF EXISTS chaos_change",
    ),
    "sqlite": (
        *(
            f"DROP TRIGGER IF EXISTS chaos_{noun}_{verb}"
            for noun in ("task", "lease", "log", "workflow")
            for verb in ("insert", "update", "delete")
        ),
        "DROP TABLE IF EXISTS chaos_change",
    ),
}
_SQLITE_MOMENT = "(julianday({0}) - 2440587.5) * 86400.0"
READ = {
    "postgresql": f"SELECT number, at, {COLUMNS} FROM chaos_change ORDER BY number",
    "sqlite": f"""
        SELECT number, {_SQLITE_MOMENT.format("at")}, noun, task_id, attempt, before, after,
            worker_name, holds_unique_key, {_SQLITE_MOMENT.format("expires_at")},
            {_SQLITE_MOMENT.format("run_after")}
        FROM chaos_change ORDER BY number
    """,
}
