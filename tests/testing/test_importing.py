"""What importing the helpers asks for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.worker_process import ROOT

SCRIPT = """
import sys
import taskqueue.testing.pytest
print([name for name in sys.modules if name.startswith(("taskqueue.models", "taskqueue.engine"))])
for name in [name for name in sys.modules if name.startswith("taskqueue.testing")]:
    del sys.modules[name]
sys.modules["pytest"] = None
import django
django.setup()
from taskqueue.testing import *
print(run_due.__module__)
"""


@pytest.mark.slow
def test_it_loads_no_models_before_django_is_set_up_and_needs_no_pytest() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert found.stdout.splitlines() == ["[]", "taskqueue.testing.running"]
