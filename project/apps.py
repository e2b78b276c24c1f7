"""The app of the demo project."""

from __future__ import annotations

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Reads source files, one task a file."""

    name = "project"
    verbose_name = "Demo"
