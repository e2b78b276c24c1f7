"""The refusal of a verb is shown at the field that it is about."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.utils.translation import override

from taskqueue.models import AlertRule, Endpoint
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import filled
from tests.admin.test_admin import url

pytestmark = pytest.mark.django_db
ENDPOINT = {"url": "https://receiver.example/hook"}
RULE = {"name": "a", "kind": "failure_rate", "scope": "all", "enabled": "on"}


def test_the_address_under_which_the_admin_adds_rows_leads_to_the_form_of_a_rule(
    log_in_as: LogIn,
) -> None:
    answer = log_in_as("superuser").get("/admin/taskqueue/alertrule/add/")
    assert answer["Location"] == url("alertrule", "new")


@pytest.mark.parametrize(
    ("page", "given", "told"),
    [
        (("endpoint", "add"), {**ENDPOINT, "kinds": "x"}, "可用的类型为 task.enqueued"),
        (("schedule", "add"), filled(expression="0 25 * * *"), "小时不能为"),
        (("schedule", "add"), filled(tz="?"), "规则\uff1a"),
        (("queue", "pauses"), {"verb": "odd"}, "odd 不在可用的选项中"),
    ],
)
def test_refusals_are_wholly_in_the_language_of_the_reader(
    page: tuple[str, str], given: dict[str, Any], told: str, log_in_as: LogIn
) -> None:
    with override("zh-hans"):
        answer = log_in_as("superuser").post(url(*page), given, follow=True)
    text = answer.content.decode()
    assert told in text
    for english in ("The rule", "The kinds are", "Verb"):
        assert english not in text


@pytest.mark.parametrize(
    ("page", "given", "field"),
    [
        (("endpoint", "add"), {"url": "http://receiver.example"}, "url"),
        (("endpoint", "add"), {**ENDPOINT, "kinds": "task.fialed"}, "kinds"),
        (("endpoint", "add"), {**ENDPOINT, "names": "shop.[ab]"}, "names"),
        (("alertrule", "new"), {**RULE, "name": "a/b"}, "name"),
        (("alertrule", "new"), {**RULE, "threshold": "7"}, "threshold"),
        (("alertrule", "new"), {**RULE, "wait": "200d"}, "wait"),
        (("alertrule", "new"), {**RULE, "pattern": "m*"}, "pattern"),
        (("alertrule", "new"), {**RULE, "endpoints": "77"}, "endpoints"),
        (("alertrule", "new"), {**RULE, "kind": "heartbeat"}, "url"),
    ],
)
def test_refusals_are_shown_at_their_field(
    page: tuple[str, str], given: dict[str, Any], field: str, log_in_as: LogIn
) -> None:
    answer = log_in_as("superuser").post(url(*page), given)
    assert answer.status_code == 200
    text = answer.content.decode()
    # From the label of the field to that of the next one. A group of checkboxes has no id.
    label = "<label>Endpoints" if field == "endpoints" else f'<label for="id_{field}"'
    (part,) = re.findall(f"{label}.*?(?=<label|</form>)", text, re.DOTALL)
    assert 'class="errorlist"' in part
    assert text.count('class="errorlist') == 1
    assert not Endpoint.objects.exists()
    assert not AlertRule.objects.exists()
