"""The admin has a translated label for everything that it shows of a model."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.test import RequestFactory
from django.utils.functional import Promise

from taskqueue.admin.columns import OTHER_WORDS, WORDS, label

MODELS = list(apps.get_app_config("taskqueue").get_models())
PAGES = [(model, admin.site._registry[model]) for model in MODELS if model in admin.site._registry]


def test_every_model_that_has_a_page_has_its_words() -> None:
    assert len(PAGES) == 17
    for model, _page in PAGES:
        assert isinstance(model._meta.verbose_name, Promise), model
        assert isinstance(model._meta.verbose_name_plural, Promise), model


def test_labels_are_translated_when_they_are_read_not_when_they_are_loaded() -> None:
    assert isinstance(label("finished_at"), Promise)


def test_every_word_is_that_of_a_column() -> None:
    columns = {field.name for model in MODELS for field in model._meta.local_fields}
    assert {*WORDS, *OTHER_WORDS.values()} <= {str(label(name)) for name in columns}


def test_every_column_that_a_list_or_a_page_shows_as_it_is_has_a_label() -> None:
    request = RequestFactory().get("/")
    for model, page in PAGES:
        shown: list[Any] = flatten([*page.get_list_display(request), *(page.fields or ())])
        columns = {field.name for field in model._meta.local_fields}
        for name in shown:
            if name in columns and not hasattr(page, name):
                assert name in OTHER_WORDS or str(label(name)) in WORDS, (model, name)


@pytest.mark.django_db
def test_migrations_and_permissions_keep_the_models_own_words() -> None:
    call_command("makemigrations", "taskqueue", check=True, dry_run=True, verbosity=0)
    assert Permission.objects.get(codename="view_tasklog").name == "Can view log line"
