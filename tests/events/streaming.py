"""Reading server-sent events by Django's ASGI handler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient

PATIENCE = 60.0


def run(body: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end."""

    async def bounded() -> Any:
        return await asyncio.wait_for(body(), PATIENCE)

    return async_to_sync(bounded)()


async def logged_in(*permissions: str) -> AsyncClient:
    """A client of a superuser, or of a member of the staff with these permissions."""
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(_user)(permissions))
    return client


def _user(permissions: tuple[str, ...]) -> User:
    if not permissions:
        return User.objects.create_superuser("root")
    user = User.objects.create_user("member", is_staff=True)
    of_app = Permission.objects.filter(content_type__app_label="taskqueue")
    user.user_permissions.set(of_app.filter(codename__in=permissions))
    return user


async def parts(answer: Any) -> AsyncIterator[dict[str, str]]:
    """The parts of a stream, by the names of their lines."""
    async for part in answer.streaming_content:
        lines = [line.partition(": ") for line in part.decode().strip().split("\n")]
        yield {name: value for name, _, value in lines}


async def close(answer: Any) -> None:
    """End a stream as a client that goes away."""
    await sync_to_async(answer.close)()
