"""The tables change while workers run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from django.db import connection

import taskqueue.migrations
from taskqueue.models import Lease
from tests.chaos.databases import ROOT
from tests.chaos.faults.base import Fault
from tests.chaos.faults.outages import OWN_CRASH
from tests.chaos.fleet import LONG_LEASE
from tests.worker_process import worker_environment

# As a later version may bring it: additive, and known to no worker that runs.
NEXT = """
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import connection, migrations, models

class Migration(migrations.Migration):
    atomic = False
    dependencies = [("taskqueue", "0001_initial")]
    operations = [
        migrations.AddField("task", "colour", models.CharField(max_length=10, null=True)),
        migrations.AddField("lease", "colour", models.CharField(max_length=10, null=True)),
        migrations.AddField("worker", "colour", models.CharField(max_length=10, null=True)),
        (AddIndexConcurrently if connection.vendor == "postgresql" else migrations.AddIndex)(
            "task", models.Index(fields=["colour"], name="taskqueue_task_colour")
        ),
    ]
"""


class MigratedUnderLoad(Fault):
    """A later version migrates the tables; workers of this one go on, and start."""

    name = "migrated_under_load"
    expectation = "workers wait, then go on; no attempt is lost"
    lease = LONG_LEASE

    def strike(self) -> None:
        stage = self.stage
        package = stage.folder / "later_migrations"
        shutil.copytree(Path(taskqueue.migrations.__file__).parent, package)
        (package / "0002_colours.py").write_text(NEXT)
        stage.await_load(0.3)
        began = stage.now()
        self._migrate(package.name)
        stage.start_worker("process", 2)
        stage.note(self.name, began)
        stage.await_load(1)

    def _migrate(self, package: str) -> None:
        stage = self.stage
        run = subprocess.run(
            [sys.executable, "-m", "django", "migrate", "taskqueue"],
            cwd=ROOT,
            env={
                **worker_environment({}),
                **stage.database.environment(),
                "PYTHONPATH": str(stage.folder),
                "CHAOS_MIGRATIONS": package,
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        if run.returncode:
            stage.problems.append(f"the migration failed: {run.stderr[-500:]}")

    def look(self) -> Iterator[str]:
        with connection.cursor() as cursor:
            columns = connection.introspection.get_table_description(cursor, "taskqueue_task")
        if "colour" not in {column.name for column in columns}:
            yield "the tables have no new column: the fault did not happen"
        for lease in Lease.objects.filter(status="lost").exclude(OWN_CRASH):
            yield f"{lease} was lost: {lease.error_message}"
