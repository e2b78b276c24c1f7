"""A process of its own that runs the doctor once, and keeps what it finds.

It is neither the worker's parent, which runs no code of the project, nor one of its children, whose
bodies it would slow down.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import suppress

from taskqueue.worker import child

logger = logging.getLogger("taskqueue.worker")

# The time limit of each statement.
PATIENCE = "5s"
# The work of tasks goes first.
NICE = 10


def main() -> None:
    """Start clean, with the settings that the parent left in the environment."""
    setup = json.loads(os.environ.pop("TASKQUEUE_EXAMINATION"))
    sys.path[:] = setup["path"]
    sys.argv[0] = setup["argv0"]
    child.obey_parent_alone(setup["parent"])
    child.name_process("taskqueue-exam")
    with suppress(OSError):
        os.nice(NICE)
    child.load_project()
    try:
        run(setup["worker_name"], host=setup["host"])
    except Exception:
        logger.exception("Examination failed")
        sys.exit(1)


def run(worker_name: str, *, host: str) -> None:
    """Run the doctor, and keep its warnings and problems for notices and alerts."""
    from django.utils.translation import override

    from taskqueue.engine.connections import project_connection
    from taskqueue.engine.examinations import keep
    from taskqueue.monitoring.doctor import examine
    from taskqueue.monitoring.doctor.keeping import notes_of

    with override("en"):  # They are kept, and their readers speak several languages.
        found = examine(patience=PATIENCE)
    notes = notes_of(found, host=host)
    keep(project_connection(), notes, worker_name=worker_name, host=host)


if __name__ == "__main__":
    from taskqueue.worker.bodies.examining import main as run_examination

    run_examination()
