"""The parts of a task's result, which a client can follow while its body writes them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from taskqueue.access.permissions import VIEW_TASKS
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.fields import Strict
from taskqueue.api.tasks.history import LARGEST_ATTEMPT
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.api.views import Digits
from taskqueue.core.states import FINISHED
from taskqueue.engine.control.locking import id_of
from taskqueue.monitoring.read_models.part import PartPage, part_page


class WhichParts(Strict):
    """The filter of parts."""

    # -1 is the `after` of an answer without parts.
    after = Digits(
        min_value=-1, help_text="Only parts after this position; default: from the first."
    )
    limit = Digits(default=100, min_value=1, max_value=1000)
    attempt = Digits(
        max_value=LARGEST_ATTEMPT, help_text="Of this attempt; left out: of the latest."
    )
    wait = Digits(
        default=0,
        max_value=LONGEST_WAIT,
        help_text="Seconds to wait for a part or for the task's end.",
    )


class TaskParts(ApiView):
    """The parts of a task's result."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "tasks"
    has_etag = True

    @endpoint("listParts", answers={200: PartPage}, query=WhichParts, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """The parts of its result that the body has written so far, in order.

        To follow it, repeat the request with `attempt`, `after` and `wait`.
        """
        query, known = dict(self.parameters), id_of(task_id)
        seconds = query.pop("wait")
        page = waited(
            self,
            lambda: part_page(known, **query),
            lambda page: bool(page.results) or page.status in FINISHED,
            seconds,
        )
        return self.shown(page)
