"""`manage.py runworker` refuses invalid flags with a message."""

from __future__ import annotations

import pytest

from taskqueue.management.commands.runworker import Command


@pytest.mark.parametrize("text", ["abc", "0", "1.5", "", "9" * 5000])
@pytest.mark.parametrize("flag", ["--concurrency", "--max-tasks"])
def test_a_count_is_a_whole_number(
    flag: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"argument {flag}: must be a whole number of at least 1\n" in _said(flag, text, capsys)


@pytest.mark.parametrize("text", ["abc", "-1", "nan", "inf"])
@pytest.mark.parametrize("flag", ["--shutdown-timeout", "--max-memory", "--poll-interval"])
def test_seconds_and_megabytes_are_numbers(
    flag: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"argument {flag}: must be a number of at least 0" in _said(flag, text, capsys)


def test_a_flag_is_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unrecognized arguments: --conc=2" in _said("--conc", "2", capsys)


def _said(flag: str, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    command = Command()
    command._called_from_command_line = True
    with pytest.raises(SystemExit) as ended:
        command.create_parser("manage.py", "runworker").parse_args([f"{flag}={text}"])
    assert ended.value.code == 2
    return capsys.readouterr().err
