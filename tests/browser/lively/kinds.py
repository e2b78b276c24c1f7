"""What each of the shop's tasks usually does: arguments, durations, errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from taskqueue.definitions import Definition
from tests.browser.lively import shop

WORDS = ("spring", "winter", "vip", "returning", "lapsed", "weekly", "berlin", "outlet")
SUPPLIERS = ("nordwind", "acme", "globex", "initech", "umbrella")


@dataclass(frozen=True)
class Kind:
    """A definition, and how its runs usually go."""

    definition: Definition[Any, Any]
    share: int
    """How many of its runs there are beside those of others."""
    seconds: float
    """A run in the middle of all."""
    failure_rate: float
    arguments: Callable[[Random], dict[str, Any]]
    error_class: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def queue_name(self) -> str:
        return self.definition.options.queue_name

    @property
    def priority(self) -> int:
        return self.definition.options.priority

    @property
    def max_attempts(self) -> int:
        return self.definition.options.max_attempts or 1


def order(random: Random) -> int:
    """The number of an order."""
    return random.randint(104_000, 109_999)


KINDS = (
    Kind(shop.send_receipt, 40, 0.4, 0.02,
         lambda r: {"order_id": order(r), "language": r.choice(["en", "de", "fr", "zh"])},
         "smtplib.SMTPServerDisconnected", "Connection unexpectedly closed: timed out"),
    Kind(shop.confirm_order, 30, 0.12, 0.01, lambda r: {"order_id": order(r)},
         "shop.stock.OutOfStock", "Article 80-113 is sold out: 2 wanted, 0 left"),
    Kind(shop.capture_payment, 18, 1.3, 0.03,
         lambda r: {"order_id": order(r), "amount": f"{r.randint(5, 300)}.90",
                    "card_token": "tok_4242"},
         "requests.exceptions.ReadTimeout",
         "HTTPSConnectionPool(host='api.payments.example', port=443): Read timed out. "
         "(read timeout=10)"),
    Kind(shop.resize_image, 16, 2.5, 0.02,
         lambda r: {"path": f"products/{r.randint(1000, 9999)}.jpg", "widths": [320, 800, 1600]},
         "PIL.UnidentifiedImageError", "cannot identify image file 'products/7731.jpg'"),
    Kind(shop.sync_crm, 14, 0.8, 0.04, lambda r: {"customer_id": r.randint(1, 40_000)},
         "shop.crm.RateLimited", "429: 600 calls a minute are allowed; try again in 38 s"),
    Kind(shop.reindex, 4, 48.0, 0.01, lambda r: {"catalogue": r.choice(["main", "outlet"])},
         "opensearchpy.exceptions.ConnectionError", "Connection refused"),
    Kind(shop.send_newsletter, 3, 95.0, 0.01,
         lambda r: {"issue": f"2026-{r.randint(1, 12):02}", "segment": r.choice(WORDS)},
         "builtins.MemoryError", ""),
    Kind(shop.build_report, 2, 310.0, 0.08,
         lambda r: {"year": 2026, "month": r.randint(1, 11), "formats": ["pdf", "xlsx"]},
         "django.db.utils.OperationalError",
         "canceling statement due to statement timeout\nCONTEXT: while scanning the ledger"),
    Kind(shop.fetch_feed, 5, 14.0, 0.12,
         lambda r: {"supplier": r.choice(SUPPLIERS), "url": "https://feeds.example/v2/offers.xml",
                    "options": {"gzip": True, "since": "2026-11-21T00:00:00Z"}},
         "xml.etree.ElementTree.ParseError", "mismatched tag: line 4812, column 14"),
    Kind(shop.expire_carts, 1, 6.0, 0.0, lambda r: {"older_than_days": 30}),
    Kind(shop.transcode, 1, 120.0, 0.0,
         lambda r: {"path": f"films/{r.randint(100, 999)}.mov", "profile": "1080p"}),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}
