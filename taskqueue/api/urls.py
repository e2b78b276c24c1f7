"""The addresses of the API, to be included under a prefix of the project's choice.

What is named by free text is matched last: such a name may hold a slash.
"""

from __future__ import annotations

from django.urls import path

from taskqueue.api import queues

app_name = "taskqueue-api"
urlpatterns = [
    path("queues/", queues.QueueList.as_view(), name="queues"),
    path("queues/<path:name>/pause/", queues.QueuePause.as_view(), name="queue-pause"),
    path("queues/<path:name>/resume/", queues.QueueResume.as_view(), name="queue-resume"),
    path("queues/<path:name>/", queues.QueueDetail.as_view(), name="queue"),
]
