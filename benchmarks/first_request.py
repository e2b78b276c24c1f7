"""The first request of a process: `python -m benchmarks.first_request ADDRESS COOKIE`.

Starts Django as a WSGI server does, requests the address, and prints the milliseconds of the first
and of the second response. `admin_pages` runs it with the settings of its own database.
"""

from __future__ import annotations

import io
import sys
import time
from typing import Any


def main() -> None:
    """Ask twice, and print how long each answer took."""
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application

    settings.ALLOWED_HOSTS = ["testserver"]
    address, cookie = sys.argv[1:]
    application = get_wsgi_application()
    print(*(round(1000 * _seconds(application, address, cookie)) for _ in range(2)))


def _seconds(application: Any, address: str, cookie: str) -> float:
    path, _, query = address.partition("?")
    environ = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_COOKIE": cookie,
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
        "wsgi.multithread": True,
    }
    statuses: list[str] = []
    begun = time.perf_counter()
    answer = application(environ, lambda status, headers: statuses.append(status))
    b"".join(answer)
    answer.close()
    if statuses != ["200 OK"]:
        raise SystemExit(f"{address} answers {statuses}.")
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
