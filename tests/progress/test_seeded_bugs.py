"""The tests of tokens see the mistakes that matter most."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from taskqueue.progress import tokens
from tests.progress import test_looking, test_tokens

pytestmark = pytest.mark.django_db


def test_an_expiry_that_nobody_compares_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "time", SimpleNamespace(time=lambda: 0.0))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_tokens.test_a_token_whose_time_is_over_is_refused()
    with pytest.raises(AssertionError):
        test_looking.test_a_token_that_has_expired_shows_nothing_more()


def test_a_token_that_is_made_without_an_end_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_end(seconds: Any) -> int:
        """The mistake: what is no time is for ever."""
        return 2**40

    monkeypatch.setattr("taskqueue.progress.progress.expiry", without_end)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_tokens.test_a_token_without_an_end_is_not_made(None)
