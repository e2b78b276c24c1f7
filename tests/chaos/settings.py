"""Settings of the fault run: those of the tests, and the tasks of this package."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.chaos"]
