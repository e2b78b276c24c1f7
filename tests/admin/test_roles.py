"""`manage.py taskqueue roles` makes groups for those who look, operate and administer."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command

from taskqueue.access import permissions, roles

pytestmark = pytest.mark.django_db


def run() -> list[dict[str, Any]]:
    """What the command did."""
    said = StringIO()
    call_command("taskqueue", "roles", "--format", "json", stdout=said)
    done: list[dict[str, Any]] = json.loads(said.getvalue())
    return done


def codenames(group: str) -> set[str]:
    """The permissions of a group."""
    return set(Group.objects.get(name=group).permissions.values_list("codename", flat=True))


def test_three_groups_are_made_each_with_its_permissions() -> None:
    assert [row["done"] for row in run()] == ["created"] * 3
    for role in roles.ROLES:
        assert codenames(role.group) == role.permissions


def test_a_second_run_changes_nothing() -> None:
    run()
    assert [(row["done"], row["added"], row["removed"]) for row in run()] == [
        ("unchanged", "", "")
    ] * 3


def test_a_group_that_was_changed_is_put_right_and_keeps_what_is_of_other_apps() -> None:
    run()
    group = Group.objects.get(name="taskqueue viewer")
    of_app = Permission.objects.filter(content_type__app_label="taskqueue")
    group.permissions.add(of_app.get(codename="purge"), Permission.objects.get(codename="add_user"))
    group.permissions.remove(of_app.get(codename="view_task"))
    member = User.objects.create_user("ann", is_staff=True)
    member.groups.add(group)
    viewer = run()[0]
    assert (viewer["done"], viewer["added"], viewer["removed"]) == (
        "updated", "view_task", "purge"
    )  # fmt: skip
    assert codenames(group.name) == {*roles.VIEWER.permissions, "add_user"}
    member = User.objects.get(pk=member.pk)
    assert member.has_perm(permissions.VIEW_TASKS)
    assert not member.has_perm(permissions.PURGE)


def test_the_administrator_has_every_permission_that_there_is() -> None:
    there_are = Permission.objects.filter(content_type__app_label="taskqueue")
    assert set(there_are.values_list("codename", flat=True)) == roles.ADMINISTRATOR.permissions


def test_a_viewer_can_do_nothing_and_sees_no_hidden_arguments() -> None:
    assert all(name.startswith("view_") for name in roles.VIEWER.permissions)
    assert "view_arguments" not in roles.OPERATOR.permissions
    assert "purge" not in roles.OPERATOR.permissions


def test_the_text_says_what_was_done() -> None:
    said = StringIO()
    call_command("taskqueue", "roles", stdout=said)
    lines = said.getvalue().splitlines()
    assert lines[0].split() == ["group", "done", "added", "removed"]
    assert lines[1].startswith("taskqueue viewer         created")


def test_before_the_migration_it_says_what_to_do() -> None:
    Permission.objects.filter(codename="purge").delete()
    with pytest.raises(CommandError, match=r"'purge'.*migrate"):
        run()
