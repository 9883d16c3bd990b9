"""Sentences that name a number, a place or a state: the fact is read from the code that makes it so."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.app import shipped_registry
from cortex.base.model import PROFILES
from cortex.services.accounts.accounts import CONFIRMED_FOR
from cortex.services.accounts.device_links import DEVICE_LINK_LIFE
from cortex.services.accounts.passwords import MIN_LENGTH
from cortex.services.accounts.people import INVITATION_LIFE, LINK_LIFE
from cortex.services.api.tokens import DAYS as TOKEN_DAYS
from cortex.services.backup.places import FRESH, KEPT_DAYS, KEPT_FRESH, KEPT_WEEKS
from cortex.services.chat.conversations import UNDO as CHATS_UNDO
from cortex.services.content.file_looks import UNDO as FILES_UNDO
from cortex.services.content.notes import UNDO as NOTES_UNDO
from cortex.services.health.live import LOOKED_BACK
from cortex.services.memory.user_memory import UNDO as MEMORY_UNDO
from cortex.services.models.sharing import DAYS as SHARED_DAYS
from cortex.services.notices.devices import SILENT_AFTER
from cortex.services.tools.listing import DAYS as LISTED_DAYS
from cortex.storage import jobs, reminders
from web.pages import chat_import, integrations

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def says(place: str, *sentences: str) -> None:
    """Each stands in this file of the pages or services."""
    text = re.sub(r'"\s+"', "", Path(place).read_text(encoding="utf-8"))  # a sentence over several lines
    assert [one for one in sentences if one not in text] == []


def test_what_the_pages_say_of_backups_is_what_is_kept() -> None:
    kept = (
        f"of the last {FRESH // HOUR} hours (the newest {KEPT_FRESH})",
        f"last {KEPT_DAYS} days and {KEPT_WEEKS} weeks",
    )
    says("web/templates/backups.html", *kept)


def test_links_and_passwords_last_as_long_as_they_say() -> None:
    minutes = LINK_LIFE // MINUTE
    assert INVITATION_LIFE == DAY
    says("web/templates/setup.html", f"It works once, for {minutes} minutes", f"{MIN_LENGTH} letters or more")
    says("web/templates/start_parts.html", f"Good once, for {DEVICE_LINK_LIFE // MINUTE} minutes.", "until tomorrow")
    says("web/templates/users.html", f"for {minutes} minutes", "It works once, for a day")
    in_welcome = f"an invitation for a day, a link for a new password for {minutes} minutes"
    says("web/templates/welcome.html", in_welcome, f"{MIN_LENGTH} letters or more")
    says("web/serve.py", f"within {minutes} minutes")
    says("web/templates/password_again.html", f"every {CONFIRMED_FOR // MINUTE} minutes")
    says("web/templates/account_sign_in.html", f"{MIN_LENGTH} characters or more")


@pytest.mark.parametrize(
    ("life", "place"),
    [
        (CHATS_UNDO, "web/pages/conversations.py"),
        (FILES_UNDO, "web/templates/file_parts.html"),
        (NOTES_UNDO, "web/pages/notes.py"),
        (MEMORY_UNDO, "web/pages/memory.py"),
        (jobs.KEPT_FOR_RESTORE, "web/pages/job_runs.py"),
        (reminders.KEPT_FOR_RESTORE, "web/pages/reminders.py"),
    ],
    ids=["chats", "files", "notes", "memory", "jobs", "reminders"],
)
def test_what_can_be_undone_for_a_day_can(life: timedelta, place: str) -> None:
    text = Path(place).read_text(encoding="utf-8")
    assert (life, "for a day" in text.lower()) == (DAY, True)


def test_what_is_said_of_caches_is_what_the_planner_counts_with() -> None:
    anthropic, openai, local = (PROFILES[name] for name in ("anthropic", "openai", "local"))
    assert (anthropic.read_factor, anthropic.write_factor, openai.read_factor) == (0.1, 1.25, 0.1)
    assert (local.read_factor, local.strength, PROFILES["none"].caches) == (0.0, "weak", False)
    says(
        "web/templates/model.html",
        f"Like Anthropic: kept {anthropic.life_s // 60} minutes, reading again costs a tenth, keeping a quarter more",
        f"Like OpenAI: kept {openai.life_s // 60} minutes, reading again costs a tenth",
        f"Local server: kept {local.life_s // 60} minutes, reading again is free",
        f"Use by others in {SHARED_DAYS} days",
    )


def test_stretches_of_time_are_those_that_are_counted() -> None:
    says("web/templates/tokens.html", f"to {TOKEN_DAYS} days from now")
    says("web/templates/tools.html", f"Calls, {LISTED_DAYS} days", f"not called in {LISTED_DAYS} days")
    says("cortex/services/health/live.py", f"in the last {LOOKED_BACK // HOUR} hours")
    assert timedelta(days=7) == SILENT_AFTER
    says("web/templates/device.html", "for a week")
    says("web/templates/chat_import.html", f"most_mb={chat_import.MOST_BYTES // 10_000_000 * 10}")


def test_no_category_of_tools_that_is_there_is_called_unavailable() -> None:
    tested = {name: category.tested for name, category in shipped_registry().categories.items()}
    assert all(tested.values())
    assert [name for name, words in tested.items() if "not available" in words or "yet" in words] == []


def test_the_card_of_integrations_names_what_can_be_connected() -> None:
    cards = Path("cortex/integrations/cards").glob("*.py")
    titles = " ".join(path.read_text(encoding="utf-8") for path in cards).casefold()
    named = integrations.NAV.about.removeprefix("Connect ").removesuffix(" and more.").split(", ")
    assert [one for one in named if one.removesuffix("s").casefold() not in titles] == []


@pytest.mark.parametrize("folder", ["web/templates", "cortex/services"])
def test_no_page_promises_that_everything_was_done(folder: str) -> None:
    texts = {
        path: path.read_text(encoding="utf-8") for path in Path(folder).rglob("*") if path.suffix in (".py", ".html")
    }
    for words in ("Everything shown here was done", "offer to ask again", "Cut off by a restart"):
        assert [path for path, text in texts.items() if words in text] == []
