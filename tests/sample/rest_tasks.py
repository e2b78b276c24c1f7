"""Tasks that may be enqueued over REST, besides `greet`."""

from __future__ import annotations

from typing import Any

from taskqueue import Capacity, Concurrency, Debounce, Throttle, task


@task(api=True)
def tell(*args: Any, **kwargs: Any) -> list[Any]:
    """What it was given."""
    return [args, kwargs]


@task(api=True, sensitive=["password"], unique_key=lambda user, password: f"sign in {user[0]}")
def sign_in(user: str, password: str) -> str:
    """Has a secret, and a key that is made of its arguments."""
    return user


@task(api=True, concurrency=Concurrency(2, key=lambda user, password: user[0]))
def pay_in(user: str, password: str) -> str:
    """Has a limit whose key is made of its arguments."""
    return user


@task(api=True)
def order(item: int, /, amount: int = 1, *, note: str = "") -> int:
    """Has a parameter of each kind but those that take the rest."""
    return item * amount


@task(api=True, unique_scope="payments")
def pay(amount: int) -> int:
    """Shares its unique keys with `refund`."""
    return amount


@task(api=True, unique_scope="payments")
def refund(amount: int) -> int:
    """Shares its unique keys with `pay`."""
    return -amount


@task(unique_scope="payments")
def reconcile(amount: int) -> int:
    """Shares its unique keys with `pay`, and cannot be enqueued over REST."""
    return amount


@task(api=True, unique_for="kept")
def register(number: int) -> int:
    """Keeps its unique keys."""
    return number


@task(api=True, capacity=Capacity(1, key="region"))
def crawl(region: str) -> str:
    """At most one of a region waits or runs."""
    return region


@task(api=True, throttle=Throttle("1/h", key="user"))
def remind(user: str) -> str:
    """Once an hour."""
    return user


@task(api=True, debounce=Debounce(60, key="doc", max_wait=600))
def index_doc(doc: int, text: str = "") -> int:
    """The last of a burst."""
    return doc
