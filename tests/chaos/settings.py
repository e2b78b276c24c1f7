"""Settings of the fault run: those of the tests, and the tasks of this package."""

import faulthandler
import os
import signal

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.chaos"]
# For the fault of a later version that migrates the tables.
if "CHAOS_MIGRATIONS" in os.environ:
    MIGRATION_MODULES = {"taskqueue": os.environ["CHAOS_MIGRATIONS"]}
# So that a worker which does not end tells where its threads stand.
faulthandler.register(signal.SIGUSR1)
