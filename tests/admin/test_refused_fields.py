"""What a verb refuses stands at the field that it is about."""

from __future__ import annotations

import re
from typing import Any

import pytest

from taskqueue.models import AlertRule, Endpoint
from tests.admin.conftest import LogIn
from tests.admin.test_admin import url

pytestmark = pytest.mark.django_db
ENDPOINT = {"url": "https://receiver.example/hook"}
RULE = {"name": "a", "kind": "failure_rate", "scope": "all", "enabled": "on"}


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
def test_what_is_refused_stands_at_its_field(
    page: tuple[str, str], given: dict[str, Any], field: str, log_in_as: LogIn
) -> None:
    answer = log_in_as("superuser").post(url(*page), given)
    assert answer.status_code == 200
    text = answer.content.decode()
    # From the label of the field to that of the next one.
    (part,) = re.findall(rf'<label for="id_{field}".*?(?=<label|</form>)', text, re.DOTALL)
    assert 'class="errorlist"' in part
    assert text.count('class="errorlist') == 1
    assert not Endpoint.objects.exists()
    assert not AlertRule.objects.exists()
