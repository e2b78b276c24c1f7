"""Pages of a table that may hold millions of rows."""

from __future__ import annotations

from functools import cached_property

from django.core.paginator import Paginator
from django.db.models import QuerySet


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts so many rows and no more, for an exact count reads the whole table."""

    most = 10_000

    @cached_property
    def count(self) -> int:
        """How many rows there are, up to `most`."""
        rows = self.object_list
        return rows.order_by()[: self.most].count() if isinstance(rows, QuerySet) else len(rows)

    @property
    def is_capped(self) -> bool:
        """Whether there may be rows behind the last page."""
        return self.count >= self.most
