"""Lets Django 6.1's tests import the backport, on a Django that has no `django.tasks`."""

from __future__ import annotations

import importlib
import sys

MODULES = ("", ".base", ".exceptions", ".signals", ".backends.dummy", ".backends.immediate")


def stand_in() -> None:
    """Give the modules of `django_tasks` the names of Django's, and Django's names for errors."""
    for module in MODULES:
        sys.modules[f"django.tasks{module}"] = importlib.import_module(f"django_tasks{module}")
    exceptions = importlib.import_module("django_tasks.exceptions")
    for name in ("InvalidTask", "InvalidTaskBackend"):
        setattr(exceptions, name, getattr(exceptions, f"{name}Error"))
