"""Settings of a worker that a test starts: the project's own, on the databases of the test."""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any

_passed = json.loads(os.environ["TASKQUEUE_LIVE_SETTINGS"])
_project: dict[str, Any] = vars(import_module(_passed["module"]))
globals().update({name: value for name, value in _project.items() if name.isupper()})

DATABASES = {
    alias: {**database, **_passed["databases"].get(alias, {})}
    for alias, database in _project["DATABASES"].items()
}
