"""The mail to the owner of an endpoint that was disabled."""

from __future__ import annotations

from typing import Any

from django.core.mail import mail_admins, send_mail
from django.utils.translation import gettext as _

from taskqueue.engine.webhooks.checking import origin_of
from taskqueue.models import Endpoint
from taskqueue.models.webhook import DisabledFor


def tell(endpoint: Endpoint) -> None:
    """Mail it to the person who created the endpoint, or else to `ADMINS`.

    Raises sending errors.
    """
    host = origin_of(endpoint.url)
    subject = _("Webhook endpoint %(id)s is disabled") % {"id": endpoint.pk}
    if endpoint.disabled_for == DisabledFor.GONE:
        why = _("It answered 410: it wants no more webhooks.")
    else:
        why = _("No delivery has succeeded for five days.")
    text = "\n\n".join(
        (
            _("taskqueue has disabled the endpoint %(id)s at %(host)s.")
            % {"id": endpoint.pk, "host": host},
            why,
            _(
                "Nothing more is sent to it until somebody enables it, in the admin or with "
                "`manage.py taskqueue webhooks enable %(id)s`. `manage.py taskqueue webhooks "
                "replay %(id)s` then sends what it has missed."
            )
            % {"id": endpoint.pk},
        )
    )
    address = owner_address(endpoint)
    if address:
        send_mail(subject, text, None, [address])
    else:
        mail_admins(subject, text)


def owner_address(endpoint: Endpoint) -> str:
    """Return the mail address of the user who created an endpoint; empty if there is none."""
    from django.apps import apps

    if not endpoint.created_by or not apps.is_installed("django.contrib.auth"):
        return ""
    from django.contrib.auth import get_user_model

    model: Any = get_user_model()
    try:
        user = model._default_manager.get_by_natural_key(endpoint.created_by)
    except (model.DoesNotExist, model.MultipleObjectsReturned):
        return ""
    return str(getattr(user, model.get_email_field_name(), "") or "") if user.is_active else ""
