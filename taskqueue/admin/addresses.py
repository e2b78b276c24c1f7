"""The addresses of our pages, in that admin site which serves the present request.

A project may have several sites. Whatever shows a row knows of no request, so the site is kept
where all that is done for the request finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import wraps
from typing import Any

from asgiref.sync import iscoroutinefunction
from django import urls
from django.http import HttpResponseRedirect
from django.template.response import SimpleTemplateResponse

_site: ContextVar[str | None] = ContextVar("taskqueue_admin_site", default=None)


def reverse(name: str, args: Sequence[object] | None = None) -> str:
    """As Django's, within the site that serves; outside of a request within the default one."""
    return urls.reverse(name, args=args, current_app=_site.get())


def redirect(to: str, *args: object) -> HttpResponseRedirect:
    """To an address, or to a page by its name."""
    return HttpResponseRedirect(to if "/" in to else reverse(to, args))


def served_by(site: Any, pattern: Any) -> Any:
    """The pattern with a view that lets `reverse` know the site."""
    if not isinstance(pattern, urls.URLPattern):  # A project may include patterns of its own.
        return pattern
    served = copy(pattern)
    view = pattern.callback
    served.callback = (
        _async(site.name, view) if iscoroutinefunction(view) else _sync(site.name, view)
    )
    return served


def _sync(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(view)
    def serve(request: Any, *args: Any, **kwargs: Any) -> Any:
        request.current_app = name
        with _serving(name):
            return _rendered_by(name, view(request, *args, **kwargs))

    return serve


def _async(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(view)
    async def serve(request: Any, *args: Any, **kwargs: Any) -> Any:
        request.current_app = name
        with _serving(name):
            return _rendered_by(name, await view(request, *args, **kwargs))

    return serve


@contextmanager
def _serving(name: str) -> Iterator[None]:
    token = _site.set(name)
    try:
        yield
    finally:
        _site.reset(token)


def _rendered_by(name: str, response: Any) -> Any:
    """The response, which Django renders only after the view: then rows are shown."""
    if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
        later: Any = response
        render = later.render

        def render_here() -> Any:
            del later.render
            with _serving(name):
                return render()

        later.render = render_here
    return response
