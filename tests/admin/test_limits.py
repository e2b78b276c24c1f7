"""Debounce, throttle and capacity in the form that enqueues."""

from __future__ import annotations

import pytest
from django.test import Client

from taskqueue.models import Task
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.sample.rest_tasks import crawl, index_doc, remind

pytestmark = pytest.mark.django_db


def send(client: Client, name: str, **given: str) -> str:
    answer = client.post(f"{url('task', 'add')}?name={name}", given, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_form_says_what_became_of_a_limited_call(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    send(client, crawl.name, arg_region="eu")
    again = send(client, crawl.name, arg_region="eu")
    assert "is reached: 1 unfinished task with this key" in again
    send(client, remind.name, arg_user="ada")
    assert "Nothing was enqueued" in send(client, remind.name, arg_user="ada")
    send(client, index_doc.name, arg_doc="1", arg_text="a")
    assert "was updated" in send(client, index_doc.name, arg_doc="1", arg_text="b")
    assert Task.objects.count() == 3


def test_the_page_of_a_task_tells_that_it_is_debounced(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    task = index_doc.enqueue(1)
    page = read(client, url("task", "change", task.id))
    assert "It is debounced: it runs at" in page
    assert "debounce:1" in page


def test_limits_can_be_given_among_the_further_options(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    lifted = '{"capacity": null}'
    for _ in range(2):
        send(client, crawl.name, arg_region="eu", options=lifted)
    assert Task.objects.count() == 2
    wrong = send(client, crawl.name, arg_region="eu", options='{"capacity": {"number": 0}}')
    assert "must be a whole number from 1 to 1,000" in wrong
