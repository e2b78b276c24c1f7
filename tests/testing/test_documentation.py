"""docs/testing.md: its examples are tests, and run here."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest

from tests.worker_process import ROOT

# Django 6.1 wants a setting for mail that earlier versions do not know.
pytestmark = pytest.mark.filterwarnings("ignore:.*default mailer")

TEXT = (ROOT / "docs" / "testing.md").read_text()
TASKS, *TESTS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)

for _name in ("bakery", "bakery.tasks"):
    sys.modules[_name] = ModuleType(_name)
exec(TASKS, vars(sys.modules["bakery.tasks"]))
# In this module's own names, where pytest finds the tests, as it does in a project's.
for _block in TESTS:
    if "live_worker" not in _block:  # Whose process has no such app; it has tests of its own.
        exec(_block, globals())


def test_every_exported_name_is_documented() -> None:
    from taskqueue import testing

    assert [name for name in testing.__all__ if name not in TEXT] == []
    assert all(getattr(testing, name) for name in testing.__all__)
