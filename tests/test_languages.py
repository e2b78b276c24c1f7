"""The catalogue of Simplified Chinese holds every text of the package, and nothing else."""

from __future__ import annotations

import gettext
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils.translation import gettext as translate
from django.utils.translation import override

from taskqueue.core.states import LeaseStatus, TaskStatus
from taskqueue.display import WORDS
from taskqueue.monitoring.alerts import sentences
from taskqueue.monitoring.alerts.sentences import translated, translated_remedy
from taskqueue.monitoring.notice import WARNING, Notice
from taskqueue.monitoring.notice_texts import TEXTS
from tests.catalogue import FOLDER, PACKAGE, Entry, Text, entries, marked_texts

CATALOGUE = entries(FOLDER / "django.po")
PLACEHOLDERS = re.compile(r"%\(\w+\)[sd]|%%|\{\w*(?:![rs])?(?::[^{}]*)?\}")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
SAME = {"JSON Lines", "id", "%(number)s %%", "%(count)s of %(most)s", "%(done)s of %(expected)s",
        "%(busy)s of %(slots)s", "%(act)s %(name)s", "%(act)s?", ", ", ": ", " {hint}",
        "{name}: {error}", "{who}: {error}", "backoff: {error}", "{type} ({shown})",
        "%(times)s (%(zone)s)"}  # fmt: skip
"""Texts whose translation needs no Chinese."""
ENDS = {".": "。", ":": "\uff1a", "?": "\uff1f", "…": "…"}


def texts_of(found: list[Entry]) -> set[Text]:
    return {entry.text for entry in found}


def test_every_marked_text_is_in_the_catalogue_and_no_other() -> None:
    marked, known = marked_texts(), texts_of(CATALOGUE)
    plurals = {(text.context, text.singular) for text in marked if text.plural}
    marked = {
        text for text in marked if text.plural or (text.context, text.singular) not in plurals
    }
    assert sorted(marked - known) == []
    assert sorted(known - marked) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("xgettext") is None, reason="gettext is not installed")
def test_the_catalogue_is_what_a_fresh_extraction_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = tmp_path / "taskqueue"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "locale"))
    (copied / "locale").mkdir()
    monkeypatch.chdir(copied)
    call_command("makemessages", locale=["zh_Hans"], no_location=True, verbosity=0)
    fresh = entries(copied / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po")
    assert texts_of(fresh) ^ texts_of(CATALOGUE) == set()


def test_every_text_is_translated_once_and_for_certain() -> None:
    for entry in CATALOGUE:
        assert list(entry.msgstr) == [0], f"{entry.msgid!r}: Chinese has one form"
        assert "fuzzy" not in entry.flags, entry.msgid
        assert "#|" not in entry.flags, entry.msgid
        assert "#~" not in entry.flags, entry.msgid
        assert entry.msgid in SAME or CHINESE.search(entry.msgstr[0]), entry.msgid
    singulars = {(entry.msgctxt, entry.msgid) for entry in CATALOGUE}
    assert len(texts_of(CATALOGUE)) == len(singulars) == len(CATALOGUE)


def test_translations_have_the_placeholders_of_their_texts() -> None:
    for entry in CATALOGUE:
        wanted = sorted(PLACEHOLDERS.findall(entry.msgid_plural or entry.msgid))
        assert sorted(PLACEHOLDERS.findall(entry.msgstr[0])) == wanted, entry.msgid


def test_translations_end_as_their_texts_do() -> None:
    for entry in CATALOGUE:
        end = entry.msgid[-1]
        if end in ENDS and not entry.msgid.endswith("..."):
            assert entry.msgstr[0].endswith(ENDS[end]), entry.msgid
        else:
            assert not entry.msgstr[0].endswith("。"), entry.msgid


def test_the_compiled_catalogue_matches_its_source() -> None:
    with (FOLDER / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    head = compiled.info()
    assert (head["language"], head["plural-forms"]) == ("zh_Hans", "nplurals=1; plural=0;")
    for entry in CATALOGUE:
        if entry.msgid_plural:
            for count in (0, 1, 2, 11):
                told = compiled.ngettext(entry.msgid, entry.msgid_plural, count)
                assert told == entry.msgstr[0]
        elif entry.msgctxt:
            assert compiled.pgettext(entry.msgctxt, entry.msgid) == entry.msgstr[0]
        else:
            assert compiled.gettext(entry.msgid) == entry.msgstr[0]
    held = {key for key in compiled._catalog if key}  # type: ignore[attr-defined]
    assert {key[0] if isinstance(key, tuple) else key for key in held} == {
        f"{entry.msgctxt}\x04{entry.msgid}" if entry.msgctxt else entry.msgid for entry in CATALOGUE
    }


def test_every_status_has_a_distinct_word() -> None:
    statuses = [status.value for status in (*TaskStatus, *LeaseStatus)]
    with override("zh-hans"):
        words = {status: str(WORDS[status]) for status in statuses}
    assert all(CHINESE.search(word) for word in words.values())
    assert len(set(words.values())) == len(words)
    with override("en"):
        assert {status: str(WORDS[status]) for status in statuses} == {s: s for s in statuses}


CONDITIONS = [*TEXTS.values(), *(it for it in vars(sentences).values() if isinstance(it, tuple))]
COMMANDS = {
    "{advice}", "manage.py runworker --queues {subject} --tags {tags}",
    "manage.py taskqueue workflows show {example}",
}  # fmt: skip
"""Remedies that are a command alone, and that of the doctor, which is kept in English."""


@pytest.mark.parametrize("text", CONDITIONS, ids=lambda text: text.sentence)
def test_each_condition_and_its_remedy_have_a_chinese_text(text: Any) -> None:
    with override("zh-hans"):
        for english in {*text} - {"", *COMMANDS}:
            assert CHINESE.search(translate(english)), english


TASK = "0198c3f2-0000-7000-8000-000000000000"
LONG = {"code": "long_run", "level": WARNING, "subject": TASK, "detail": "shop.send"}
PARKED = {"code": "parked", "level": WARNING, "subject": "shop.send", "count": 2, "example": TASK}
NEW = {"code": "new_error", "level": WARNING, "subject": "shop.send", "count": 1, "example": TASK}


@pytest.mark.parametrize(
    ("notice", "english", "chinese"),
    [
        (
            {**LONG, "seconds": 7200, "usual_seconds": 60},
            "run for 2 h; 95 of 100",
            "至多用时 60 秒。",
        ),
        ({**LONG, "seconds": 7200}, "fewer than 5 runs of it are known.", "已运行 2 小时\uff1b"),
        ({**PARKED, "seconds": 7200}, "parked for 2 h: it fails in 22 h.", "将在 22 小时后失败。"),
        ({**PARKED, "seconds": 90_000}, "it fails at its next attempt.", "将在下一次尝试时失败。"),
        ({**NEW, "detail": "x.Gone", "seconds": 30}, "fail with x.Gone.", "于 30 秒前失败。"),
        ({**NEW, "seconds": 30}, "fail without an error class.", "没有错误类。"),
    ],
)
def test_durations_of_a_condition_are_translated(
    notice: dict[str, Any], english: str, chinese: str
) -> None:
    found = Notice(**notice)
    stored = json.loads(json.dumps(found.words))
    with override("zh-hans"):
        assert english in found.sentence
        assert chinese in translated(stored, "")
        assert translated_remedy(stored, "") == found.translated_remedy != found.remedy


def test_the_reading_of_catalogues_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "odd.po").write_text('msgid "a"\nmsgother "b"\n', encoding="utf-8")
    with pytest.raises(ValueError, match="no line of a catalogue"):
        entries(tmp_path / "odd.po")
