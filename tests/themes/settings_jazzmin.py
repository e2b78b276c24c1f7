"""The tests' settings under django-jazzmin."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = ["jazzmin", *INSTALLED_APPS]  # noqa: F405
