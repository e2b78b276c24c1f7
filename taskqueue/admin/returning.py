"""Where a button leads back to."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme


def back(request: HttpRequest, otherwise: str) -> HttpResponseRedirect:
    """To the page that the form names; never to another site."""
    named = request.POST.get("next", "")
    is_ours = named.startswith("/") and url_has_allowed_host_and_scheme(named, allowed_hosts=None)
    return HttpResponseRedirect(named if is_ours else otherwise)
