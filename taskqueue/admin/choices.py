"""A filter by a column with choices, in people's language; the address keeps the column's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from taskqueue.admin import badges


class WordedChoices(admin.ChoicesFieldListFilter):
    """Models do not translate their choices, for these would stand in the migrations."""

    WORDS: ClassVar[dict[str, Any]] = {
        **badges.WORDS,
        "row": _("created at run time"),
        "code": _("declared in code"),
    }

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            word = choice["display"]
            yield {**choice, "display": self.WORDS.get(str(word), word)}
