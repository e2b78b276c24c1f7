"""The admin has a word in people's language for all that it shows of a model."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.utils.functional import Promise

from taskqueue.admin.naming import FIELDS, MODELS, MOMENTS


def test_every_model_that_has_a_page_has_its_words() -> None:
    models = {
        model._meta.model_name
        for model in apps.get_app_config("taskqueue").get_models()
        if model in admin.site._registry
    }
    assert models <= set(MODELS)


def test_the_words_are_translated_when_they_are_read_not_when_they_are_loaded() -> None:
    words = [*FIELDS.values(), *MOMENTS.values(), *(one for one, _ in MODELS.values())]
    assert all(isinstance(word, Promise) for word in words)


def test_every_field_that_a_list_shows_as_it_is_has_a_word() -> None:
    for model, page in admin.site._registry.items():
        if model._meta.app_label != "taskqueue":
            continue
        shown: list[Any] = flatten([*(page.list_display or ()), *(page.fields or ())])
        names = {field.name: field for field in model._meta.local_fields}
        for name in shown:
            if isinstance(name, str) and name in names and not hasattr(page, name):
                assert isinstance(names[name].verbose_name, Promise), (model, name)


@pytest.mark.django_db
def test_migrations_and_permissions_keep_the_models_own_words() -> None:
    call_command("makemigrations", "taskqueue", check=True, dry_run=True, verbosity=0)
    assert Permission.objects.get(codename="view_tasklog").name == "Can view log line"
