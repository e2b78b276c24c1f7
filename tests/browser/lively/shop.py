"""Tasks of a shop. They are shown, never run."""

from __future__ import annotations

from typing import Any

from taskqueue import Exponential, task


@task(name="shop.mail.send_receipt", queue_name="mail", max_attempts=5, backoff=Exponential(base=2))
def send_receipt(order_id: int, language: str = "en") -> None:
    """Send the customer the receipt of an order."""


@task(name="shop.mail.send_newsletter", queue_name="mail", priority=-10)
def send_newsletter(issue: str, segment: str) -> None:
    """Send an issue to a segment of the subscribers."""


@task(name="shop.orders.confirm", queue_name="orders", priority=20, max_attempts=3)
def confirm_order(order_id: int) -> None:
    """Reserve the goods of an order."""


@task(name="shop.payments.capture", queue_name="payments", priority=50, sensitive=["card_token"])
def capture_payment(order_id: int, amount: str, card_token: str) -> None:
    """Take the money that was authorised."""


@task(name="shop.images.resize", queue_name="images", max_attempts=3)
def resize_image(path: str, widths: list[int]) -> None:
    """Make the smaller sizes of a picture."""


@task(name="shop.search.reindex", queue_name="search")
def reindex(catalogue: str, since: str | None = None) -> None:
    """Bring the search up to date with the catalogue."""


@task(name="shop.reports.build_monthly", queue_name="reports", max_attempts=2)
def build_report(year: int, month: int, formats: list[str] | None = None) -> None:
    """Build the report of a month."""


@task(name="shop.imports.fetch_feed", queue_name="imports", max_attempts=4)
def fetch_feed(supplier: str, url: str, options: dict[str, Any] | None = None) -> None:
    """Fetch what a supplier offers."""


@task(name="shop.accounts.sync_crm")
def sync_crm(customer_id: int) -> None:
    """Tell the CRM what has changed about a customer."""


@task(name="shop.cleanup.expire_carts", priority=-50)
def expire_carts(older_than_days: int = 30) -> None:
    """Forget carts that nobody came back to."""


@task(name="shop.video.transcode", queue_name="video", max_attempts=2)
def transcode(path: str, profile: str = "1080p") -> None:
    """Turn a film into what browsers play."""


"""No worker of the shop serves its queue."""
