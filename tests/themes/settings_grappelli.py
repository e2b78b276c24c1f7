"""The tests' settings under django-grappelli."""

from tests.settings import *  # noqa: F403

INSTALLED_APPS = ["grappelli", *INSTALLED_APPS]  # noqa: F405
ROOT_URLCONF = "tests.themes.urls_grappelli"
