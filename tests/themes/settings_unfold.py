"""The tests' settings under django-unfold."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = ["unfold", *INSTALLED_APPS]  # noqa: F405
