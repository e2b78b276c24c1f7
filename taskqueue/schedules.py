"""The verbs on schedules: create, copy, edit, pause, resume, run, delete, export and import.

Each is audited with `by` and `reason` in its own transaction. Schedules that are declared in code
can only be edited there, but people can pause, resume and run them.
"""

from taskqueue.engine.schedules.copying import copy_schedule as copy
from taskqueue.engine.schedules.documents import Imported, export_document, import_document
from taskqueue.engine.schedules.reading import get_schedule as get
from taskqueue.engine.schedules.reading import preview_rule
from taskqueue.engine.schedules.reading import preview_schedule as preview
from taskqueue.engine.schedules.syncing import Synced
from taskqueue.engine.schedules.syncing import sync_schedules as sync
from taskqueue.engine.schedules.verbs import create_schedule as create
from taskqueue.engine.schedules.verbs import delete_schedule as delete
from taskqueue.engine.schedules.verbs import edit_schedule as edit
from taskqueue.engine.schedules.verbs import pause_schedule as pause
from taskqueue.engine.schedules.verbs import resume_schedule as resume
from taskqueue.engine.schedules.verbs import run_schedule as run_now

__all__ = [
    "Imported",
    "Synced",
    "copy",
    "create",
    "delete",
    "edit",
    "export_document",
    "get",
    "import_document",
    "pause",
    "preview",
    "preview_rule",
    "resume",
    "run_now",
    "sync",
]
