"""Arguments and results on the page of a task, as a function of the project writes them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings
from django.utils.safestring import SafeString, mark_safe

from taskqueue.core.outcomes import OutcomeKind
from tests.admin.conftest import LogIn
from tests.admin.rows import SECRET
from tests.admin.test_admin import url
from tests.engine.steps import claim_one, end
from tests.sample.tasks import add, log_in

pytestmark = pytest.mark.django_db
given: list[tuple[str, str, Any]] = []


def in_words(name: str, what: str, value: Any) -> str | None:
    given.append((name, what, value))
    return f"the sum is {value}" if what == "result" else None


def in_tags(name: str, what: str, value: Any) -> SafeString:
    return mark_safe("<script>alert(1)</script>" + "x" * 3000)


def in_vain(name: str, what: str, value: Any) -> str:
    raise LookupError("<b>no words</b>")


def as_number(name: str, what: str, value: Any) -> Any:
    return 7


def page(client: Any, formatter: Any, body: Any = add, *args: Any) -> str:
    given.clear()
    result = body.enqueue(*(args or (1, 2)))
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value="3")
    path = f"{__name__}.{getattr(formatter, '__name__', formatter)}"
    with override_settings(TASKQUEUE={"FORMATTER": path}):
        answer = client.get(url("task", "change", result.id))
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_it_writes_what_it_wants_to_and_leaves_the_rest_as_json(log_in_as: LogIn) -> None:
    text = page(log_in_as("superuser"), in_words)
    assert '<pre class="taskqueue-text">the sum is 3</pre>' in text
    assert "&quot;args&quot;: [" in text
    assert given[0] == (add.name, "arguments", {"args": [1, 2], "kwargs": {}})


def test_its_tags_are_escaped_though_marked_as_safe(log_in_as: LogIn) -> None:
    text = page(log_in_as("superuser"), in_tags)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert" not in text


@pytest.mark.parametrize(
    ("formatter", "error"),
    [
        (in_vain, "FORMATTER: LookupError: &lt;b&gt;no words&lt;/b&gt;"),
        (as_number, "as_number returned int, not text or None."),
        ("nobody", "FORMATTER: ImportError: "),
    ],
)
def test_its_errors_are_shown_beside_the_json(log_in_as: LogIn, formatter: Any, error: str) -> None:
    text = page(log_in_as("superuser"), formatter)
    assert error in text
    assert '<pre class="taskqueue-text">3</pre>' in text


def test_the_formatter_gets_no_redacted_values(log_in_as: LogIn) -> None:
    text = page(log_in_as("superuser"), in_words, log_in, "anna", SECRET)
    assert SECRET not in repr(given)
    assert SECRET not in text
