"""A web server whose threads are few answers others while a hundred requests ask to wait."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import WSGIRequestHandler, WSGIServer
from django.db import connections
from django.test import Client

from taskqueue import control
from taskqueue.api.tasks.waiting import MOST_UNDER_WSGI
from tests.sample.tasks import noop

THREADS, WAITS, USERS = 4, 100, 5
PATIENCE = 45
"""Seconds: more than any answer takes, and less than a wait."""


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class Pooled(WSGIServer):
    """Serves requests by so many threads, as most WSGI servers do."""

    request_queue_size = 2 * WAITS

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Quiet)
        self.pool = ThreadPoolExecutor(THREADS)
        self.set_app(WSGIHandler())

    def process_request(self, request: Any, client_address: Any) -> None:
        self.pool.submit(self._serve, request, client_address)

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)
            connections.close_all()


@pytest.fixture
def server() -> Iterator[Pooled]:
    with Pooled() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
        server.pool.shutdown()


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


@pytest.mark.django_db(transaction=True)
def test_others_are_answered_while_a_hundred_requests_ask_to_wait(server: Pooled) -> None:
    result = noop.enqueue()
    cookies = [cookie_of(User.objects.create_superuser(f"user {n}")) for n in range(USERS)]

    def ask(path: str, number: int, timeout: float = 300) -> tuple[int, str | None, bytes]:
        client = HTTPConnection(*server.server_address[:2], timeout=timeout)  # type: ignore[arg-type]
        headers = {"Host": "testserver", "Cookie": cookies[number % USERS]}
        client.request("GET", f"/api/v1/{path}", headers=headers)
        answer = client.getresponse()
        try:
            return answer.status, answer.getheader("Retry-After"), answer.read()
        finally:
            client.close()

    with ThreadPoolExecutor(WAITS) as clients:
        try:
            left: set[Future[tuple[int, str | None, bytes]]] = {
                clients.submit(ask, f"tasks/{result.id}/?wait=60", number)
                for number in range(WAITS)
            }
            refused = 0
            while len(left) > MOST_UNDER_WSGI:
                done, left = wait(left, timeout=PATIENCE, return_when=FIRST_COMPLETED)
                assert done, "nobody else is answered"
                assert {each.result()[:2] for each in done} == {(200, "5")}
                refused += len(done)
            assert ask("queues/", 0, PATIENCE)[0] == 200
            assert refused == WAITS - MOST_UNDER_WSGI
        finally:
            control.cancel(result.id)
        for each in left:
            status, retry_after, body = each.result()
            assert (status, retry_after) == (200, None)
            assert b'"cancelled"' in body
