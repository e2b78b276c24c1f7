"""The tables of taskqueue."""

from __future__ import annotations

from django.apps import apps


def table_names() -> list[str]:
    """By name."""
    models = apps.get_app_config("taskqueue").get_models()
    return sorted({model._meta.db_table for model in models})
