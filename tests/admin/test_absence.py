"""The app works without `django.contrib.admin`, and nothing imports it."""

from __future__ import annotations

from tests.test_architecture import run

SCRIPT = """
import sys, django
from django.conf import settings
from tests import settings as usual
values = {name: getattr(usual, name) for name in dir(usual) if name.isupper()}
apps = [app for app in usual.INSTALLED_APPS if not app.startswith("django.contrib.")]
values |= {"INSTALLED_APPS": apps, "MIDDLEWARE": [], "TEMPLATES": [], "ROOT_URLCONF": ""}
settings.configure(**values)
django.setup()
from django.core.management import call_command
call_command("check", fail_level="WARNING", verbosity=0)
call_command("migrate", verbosity=0)
from tests.sample.tasks import add
result = add.enqueue(1)
result.cancel()
import taskqueue.management.commands.runworker, taskqueue.declarations.redaction
found = [m for m in sys.modules if m.startswith("taskqueue.admin")]
print(result.status, found)
"""


def test_the_app_works_without_the_admin_and_imports_nothing_of_it() -> None:
    assert run("-c", SCRIPT).splitlines()[-1] == "cancelled []"
