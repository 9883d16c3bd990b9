"""The log of the real daemon at its most talkative level: no key, token, hash or word of a person is in it."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.databases import rows_of
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll
from tests.notify.browser import Browser
from tests.notify.loopback import Loopback
from tests.notify.mail_server import PASSWORD as MAIL_PASSWORD
from tests.notify.mail_server import Mailbox, mail_server
from tests.scripted_server import ScriptedServer, Use, rule

KEY = "key-of-the-model-7d1f"
WRONG = "not the password of anybody"
OWN = "ada@tansy.example.org"
TEXTS = SAID, ANSWERED, NOTED, SUBJECT, MAILED = "periwinkle", "marjoram", "chervil", "lovage", "sorrel"
HASHES = """select password_hash from accounts union select token_hash from logins
            union select token_hash from setup_links"""


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    mail = Use("email_send", {"to": "me", "subject": SUBJECT, "text": MAILED}, is_blind=True)
    note = Use("task_create", {"title": NOTED}, is_blind=True)
    with ScriptedServer(rule("^mail", mail, "Sent."), rule("^note", note, ANSWERED), api_key=KEY) as server:
        yield server


def use(daemon: Daemon, model: ScriptedServer, push: Loopback, mailbox: Mailbox) -> list[str]:
    """A login, one that is refused, a key, a chat with two tools, pushes and mails; what the log may not hold."""
    device = Browser().target(f"{push.origin}/push/feverfew")
    with Caller(daemon) as ada, Caller(daemon) as other:
        link = daemon.setup_link.partition("#")[2]
        ada.set_up()
        with pytest.raises(AssertionError, match="/login"):
            other.post("/login", name="Ada", password=WRONG)
        other.post("/login", name="Ada", password=PASSWORD)
        form = {"name": "m", "provider": "openai", "model": "s", "base_url": model.base_url, "api_key": KEY}
        ada.post("/models", streams="1", tools="1", **form)
        ada.post("/notifications/settings/address", channel="email", address=OWN)
        ada.post("/notifications/settings/test", channel="email")
        made = ada.post("/push/subscribe", endpoint=device.address, p256dh=device.key, auth=device.secret)
        ada.post(f"/account/devices/{made.json()['id']}/test")
        chat = ada.send("new", f"note {SAID}")
        poll(lambda: ANSWERED in ada.get(f"/c/{chat}").text)
        ada.send(chat, "mail it to me")
        question = poll(lambda: re.search(r'action="(/approvals/[^"]+)"', ada.get(f"/c/{chat}").text))
        ada.post(question[1], choice="once")
        poll(lambda: len(mailbox.mails) == 2 and push.seen)
        return [*TEXTS, OWN, "feverfew", PASSWORD, WRONG, KEY, link, ada.token, other.token, device.key, device.secret]


async def test_the_debug_log_holds_no_key_token_hash_or_word_of_a_person(
    tmp_path: Path, daemon: Daemon, model: ScriptedServer
) -> None:
    mailbox = Mailbox()
    with Loopback() as push:
        async with mail_server(mailbox) as smtp:
            daemon.set(
                log_level="debug",
                notify_hosts=":".join(map(str, push.place)),
                push_subject="mailto:ada@example.org",
                smtp_host=smtp.host,
                smtp_port=smtp.port,
                smtp_user=smtp.user,
                smtp_password=smtp.password,
                smtp_from=smtp.sender,
                smtp_security="none",
            )
            await asyncio.to_thread(daemon.start)
            planted = await asyncio.to_thread(use, daemon, model, push, mailbox)
            assert await asyncio.to_thread(daemon.stop) == 0
    with rows_of(daemon.home) as rows:
        planted += [value for (value,) in rows.execute(sa.text(HASHES)) if value]
    log = daemon.log.replace(planted[planted.index(KEY) + 1], "", 1)  # the set-up link is printed, once, to be used
    assert [value for value in [*planted, MAIL_PASSWORD] if value in log] == []
    assert re.search(r" DEBUG +cortex\.agent\.execute .* call \S+: task_create ended ok after \d+ ms\n", log)
