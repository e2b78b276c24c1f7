"""One box of text says which tasks are meant, or is refused in words that help."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from taskqueue.monitoring.searching.search import parse
from taskqueue.monitoring.searching.search_tokens import SearchError, search_text

NOW = datetime(2026, 11, 22, 15, 30, tzinfo=UTC)
ID = UUID("01900000-0000-7000-8000-000000000000")


def meant(text: str) -> dict[str, Any]:
    """What the filter is given."""
    return parse(text, now=NOW).which.given


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {"everything": True}),
        ("  \t\n ", {"everything": True}),
        (f"id:{ID}", {"ids": (ID,)}),
        (ID.hex.upper(), {"ids": (ID,)}),
        (f"{ID} {ID.hex[:-1]}1", {"ids": (ID, UUID(int=ID.int + 1))}),
        ("name:shop.tasks.send", {"name": ("shop.tasks.send",)}),
        ("name:shop.*", {"name_prefix": ("shop.",)}),
        ("name:shop.*,mail.send", {"name": ("mail.send",), "name_prefix": ("shop.",)}),
        ('name:"shop.*"', {"name": ("shop.*",)}),
        ("queue:mail,default", {"queue_name": ("mail", "default")}),
        ("status:failed,Cancelled", {"statuses": ("failed", "cancelled")}),
        ("status:failed STATUS:ready", {"statuses": ("failed", "ready")}),
        ("worker:w-1", {"worker": ("w-1",)}),
        ("error:KeyError", {"error_class": ("KeyError",)}),
        ('error:"no such key"', {"error_text": ("no such key",)}),
        ('error:"shop.errors.NoKey"', {"error_class": ("shop.errors.NoKey",)}),
        ('error:"example.com"', {"error_text": ("example.com",)}),
        ("class:socket.gaierror", {"error_path": ("socket.gaierror",)}),
        ('class:"m.f.<locals>.E"', {"error_path": ("m.f.<locals>.E",)}),
        ('class:""', {"error_path": ("",)}),
        ('key:"order 1, the \\"first\\" \\\\"', {"unique_key": ('order 1, the "first" \\',)}),
        ("key:order:1", {"unique_key": ("order:1",)}),
        ("schedule:nightly", {"schedule": ("nightly",)}),
        ("args.user.id:42", {"arguments": {"user.id": ("42",)}}),
        ("args.a:1 args.b:2,3", {"arguments": {"a": ("1",), "b": ("2", "3")}}),
        ("metadata.tenant:x", {"metadata": {"tenant": ("x",)}}),
        ("priority:5", {"lowest_priority": 5, "highest_priority": 5}),
        ("priority:>5", {"lowest_priority": 6, "highest_priority": 100}),
        ("priority:<=-5", {"lowest_priority": -100, "highest_priority": -5}),
        ("priority:1..10", {"lowest_priority": 1, "highest_priority": 10}),
        ("priority:..0", {"lowest_priority": -100, "highest_priority": 0}),
        ("send_receipt", {"words": ("send_receipt",)}),
        ('"order:1" send', {"words": ("order:1", "send")}),
        ("after:2h", {"enqueued_after": NOW - timedelta(hours=2)}),
        ("failed_after:1h", {"failed_after": NOW - timedelta(hours=1)}),
        ("finished_after:1h", {"finished_after": NOW - timedelta(hours=1)}),
        ("finished_before:1h", {"finished_before": NOW - timedelta(hours=1)}),
        ("before:1.5d", {"enqueued_before": NOW - timedelta(days=1.5)}),
        ("after:2026-11-01", {"enqueued_after": datetime(2026, 11, 1, tzinfo=UTC)}),
        ("after:14:05", {"enqueued_after": NOW.replace(hour=14, minute=5)}),
        ("after:15:30", {"enqueued_after": NOW}),
        ("after:15:30:01", {"enqueued_after": NOW + timedelta(days=-1, seconds=1)}),
        (
            "before:2026-11-01T12:00+02:00",
            {"enqueued_before": datetime(2026, 11, 1, 10, tzinfo=UTC)},
        ),
    ],
)
def test_a_search_means(text: str, fields: dict[str, Any]) -> None:
    assert meant(text) == fields


def test_times_are_read_in_the_current_time_zone() -> None:
    with timezone.override("Asia/Shanghai"):
        found = meant("after:2026-11-01")["enqueued_after"]
        of_today = meant("after:00:30")["enqueued_after"]
        of_yesterday = meant("after:23:45")["enqueued_after"]
    assert of_yesterday == datetime(2026, 11, 22, 15, 45, tzinfo=UTC) - timedelta(days=1)
    assert found == datetime(2026, 10, 31, 16, tzinfo=UTC)
    assert of_today == datetime(2026, 11, 21, 16, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stauts:failed", "Did you mean “status:”?"),
        ("que:mail", "Did you mean “queue:”?"),
        ("order:1", "quotation marks"),
        ("zzz:1", "args:"),
        ("status:faild", "Did you mean “failed”?"),
        ("status:x", "Known: blocked"),
        ("status:", "“status:” has no value"),
        ("status: failed", "without a space"),
        ("status:,", "has no value"),
        ('name:"a', "not closed"),
        ('"', "not closed"),
        ('name:"a"b', "space after"),
        ('""', "quotation marks"),
        ('error:""', "quotation marks"),
        ('error:a,"b"', "not with both"),
        ("id:12", "32 hexadecimal digits"),
        ("args:42", "args.user.id:42"),
        ("name.x:42", "takes no path"),
        ("args..x:42", "not a path"),
        ("args.a\\b:42", "not a path"),
        ("name:*", "at the end"),
        ("name:a*b*", "at the end"),
        ("priority:high", "not a priority"),
        ("priority:1,2", "one value"),
        ("priority:500", "from -100 to 100"),
        ("priority:..", "not a priority"),
        ("priority:>", "not a priority"),
        ("after:2h after:3h", "one value"),
        ("after:yesterday", "not a time"),
        ("after:2026-13-01", "not a time"),
        ("after:25:00", "not a time"),
        ("after:999999999w", "not a time"),
        ("after:0001-01-01T00:00+14:00", "not a time"),
        ("before:²h", "not a time"),
        ("before:2026", "not a time"),
        ("a\x00b", "no task can contain"),
        ("\ud800", "no task can contain"),
        ("x" * 2001, "at most 2000 characters"),
        ("x " * 21, "at most 20 terms"),
        ("status:" + ",".join(["ready"] * 101), "at most 100 values"),
    ],
)
def test_an_invalid_search_is_refused_with_a_hint(text: str, said: str) -> None:
    with pytest.raises(SearchError, match=r"\w") as refused:
        parse(text, now=NOW)
    assert said in str(refused.value)


@given(st.text(max_size=60) | st.from_regex(r'([a-z]{2,8}(\.\w+)?:)?("[^"]*"|[^ ]*)( \w+)?'))
def test_whatever_is_typed_it_is_a_search_or_refused(text: str) -> None:
    """And what it is written as again means the same."""
    try:
        search = parse(text, now=NOW)
    except SearchError:
        return
    again = parse(search.text, now=NOW)
    assert again.which == search.which
    assert again.text == search.text


@given(st.text(min_size=1, max_size=30, alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
def test_special_characters_in_the_search_of_a_link_are_literal(text: str) -> None:
    which = parse(search_text(name=text, queue=text), now=NOW).which
    assert which.given == {"name": (text,), "queue_name": (text,)}


def test_a_search_is_narrowed_and_widened() -> None:
    search = parse('send status:failed "a:b"', now=NOW)
    assert search.values("status") == ("failed",)
    assert search.narrowed("status", "ready").text == 'send "a:b" status:ready'
    assert search.narrowed("status").text == 'send "a:b"'
    assert search.narrowed("queue", "a b").which.queue_name == ("a b",)
