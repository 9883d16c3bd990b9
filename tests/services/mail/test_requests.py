"""What people ask of their mail, by whole turns of a scripted model against a real Dovecot: what comes out, exactly.

After each request every folder is read by another mail program; nothing may have changed but what was to: no mark of a
mail that was looked at, no mail moved, no draft. `minus` and `plus`: the lines that went and came.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from email.message import Message
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cortex.base.messages import ToolResult
from cortex.storage.messages import MessagesRepository
from tests.imap_servers import ImapServer, dovecot
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Say, ScriptedServer, Use, rule
from tests.services.mail.letters import NOW, connect, fill, ids, stands
from tests.still_clock import StillClock

_people = count()
SEARCH: tuple[str, dict[str, Any]] = ("mail_search", {})
MIA = "mia@example.org"


ANSWERED = {
    "To": "Karim <karim@example.org>",
    "In-Reply-To": "<roof2@example.org>",
    "References": "<roof@example.org> <sent@example.org> <roof2@example.org>",
    "": "Friday suits me.",
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """Calls of one turn, one after the other; a mail is named by its key in `THERE`, as "@roof".

    `says`: stands in the last result, `lacks` does not; `choice`: what the person says where they are asked, who
    without one is not asked. `draft`: what stands in the draft that lies there then.
    """

    calls: list[tuple[str, dict[str, Any]]]
    choice: str = ""
    minus: tuple[str, ...] = ()
    plus: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    draft: dict[str, str] = field(default_factory=dict)
    file: tuple[str, bytes] = ("", b"")


def one(tool: str, /, *, to: dict[str, Any], **expected: Any) -> Request:
    return Request(calls=[(f"mail_{tool}", to)], **expected)


def then(tool: str, /, *, to: dict[str, Any], **expected: Any) -> Request:
    """After a look at the inbox: so words from outside have been read."""
    return Request(calls=[SEARCH, (f"mail_{tool}", to)], **expected)


REQUESTS: dict[str, Request] = {
    # which there are
    "the latest": one("search", to={}, says=(
        "2026-11-27 13:00 Ola <ola@example.org>: Grüße aus Köln; unread",
        "2026-11-25 13:00 Bank <bank@example.org>: Your statement; unread; flagged"), lacks=("You won", "700")),
    "by who wrote": one("search", to={"query": "karim"}, says=("The roof", "Re: The roof"), lacks=("Offers",)),
    "by words": one("search", to={"query": "invoice"}, says=("Invoice 2044; unread; with files",), lacks=("roof",)),
    "by words with umlauts": one("search", to={"query": "grüße köln"}, says=("Grüße aus Köln",)),
    "unread": one("search", to={"only": "unread"}, says=("Trip on Friday",), lacks=("notice", "example.org>: The")),
    "flagged": one("search", to={"only": "flagged"}, says=("Your statement",), lacks=("Trip",)),
    "with files": one("search", to={"only": "with files"}, says=("Invoice 2044",), lacks=("Trip",)),
    "since a day": one("search", to={"since": "2026-11-26"}, says=("Trip on Friday", "Grüße"), lacks=("statement",)),
    "until a day": one("search", to={"until": "2026-01-01"}, says=("Tax notice",), lacks=("roof",)),
    "what was sent": one("search", to={"folder": "sent"}, says=("to Karim <karim@example.org>: Re: The roof; Sent",)),
    "spam": one("search", to={"folder": "spam"}, says=("You won",), lacks=("Trip",)),
    "inside the texts": one("search", to={"query": "bus leaves"}, says=("Trip on Friday",), lacks=(
        "roof",)),
    "inside a text of other letters": one("search", to={"query": "Schöne"}, says=("Grüße aus Köln",)),
    "nothing": one("search", to={"query": "opera"}, says=("No mail fits.",)),
    "older ones": one("search", to={"before": "@school"}, says=("Your statement",), lacks=("Grüße", "Trip")),
    "no such folder": one("search", to={"folder": "cellar"}, says=("There is no folder 'cellar'. There are:",
        "Work/Bills")),
    # one of them
    "a text": one("read", to={"mail": "@school"}, says=("The bus leaves at 7:40.", f"Cc: Mia <{MIA}>")),
    "a page": one("read", to={"mail": "@page"}, says=("Balance: 12", "euros"), lacks=("<b>", "x()")),
    "other letters": one("read", to={"mail": "#@ola"}, says=("Schöne Grüße vom Rhein.", "Grüße aus Köln")),
    "what is attached": one("read", to={"mail": "@bill"}, says=(
        "Attachment 1: invoice.pdf (application/pdf", "It is attached.")),
    "one that is not there": one("read", to={"mail": "nothing"}, says=("No mail has the id 'nothing'",)),
    "a conversation": one("thread", to={"mail": "@roof2"}, says=(
        "The roof costs 900 euros.", "Too much. 700?", "800 then."), lacks=("> Too", "Offers")),
    "a conversation from its first mail": one("thread", to={"mail": "@roof"}, says=("800 then.",)),
    "a conversation of one": one("thread", to={"mail": "@school"}, says=("The bus leaves at 7:40.",), lacks=("roof",)),
    # drafts
    "an answer": then("draft", to={"text": "Friday suits me.", "answers": "@roof2"}, plus=(
        r"Drafts: Re: The roof \Draft \Seen",), draft=ANSWERED),
    "an answer to all": then("draft", to={"text": "We come.", "answers": "@school", "to_all": True}, plus=(
        r"Drafts: Re: Trip on Friday \Draft \Seen",), draft={"*": MIA}),
    "a new one": one("draft", to={"text": "Sofa?", "to": "Ben <ben@example.org>", "subject": "Söfa"}, plus=(
        r"Drafts: Söfa \Draft \Seen",), draft={"To": "Ben <ben@example.org>", "": "Sofa?"}),
    "to somebody else, allowed": then("draft", to={"text": "Look.", "to": MIA, "subject": "Roof"}, choice="once", plus=(
        r"Drafts: Roof \Draft \Seen",), draft={"To": MIA}),
    "to somebody else, denied": then("draft", to={"text": "Look.", "to": MIA, "subject": "Roof"}, choice="deny"),
    "to no address": one("draft", to={"text": "Look.", "to": "Mia", "subject": "x"}, says=("is no e-mail address",)),
    "to nobody": one("draft", to={"text": "Look."}, says=("Say whom the draft is to",)),
    # elsewhere
    "archived, allowed": then("move", to={"mails": ["@news", "@news2"], "folder": "archive"}, choice="once", minus=(
        "INBOX: Offers of the week", "INBOX: Offers of the month"), plus=("Archive: Offers of the week",
        "Archive: Offers of the month")),
    "archived, denied": then("move", to={"mails": ["@news"], "folder": "archive"}, choice="deny"),
    "thrown away": then("move", to={"mails": ["@news"], "folder": "bin"}, choice="once", minus=(
        "INBOX: Offers of the week",), plus=("Trash: Offers of the week",)),
    "back out of spam": then("move", to={"mails": ["@junk"], "folder": "inbox"}, choice="once", minus=(
        "Junk: You won",), plus=("INBOX: You won",)),
    "into a folder by a part of its name": then("move", to={"mails": ["@bill"], "folder": "bills"}, choice="once",
        minus=("INBOX: Invoice 2044",), plus=("Work/Bills: Invoice 2044",)),
    "with its marks": then("move", to={"mails": ["@page"], "folder": "archive"}, choice="once", minus=(
        r"INBOX: Your statement \Flagged",), plus=(r"Archive: Your statement \Flagged",)),
    "where they are": one("move", to={"mails": ["@news"], "folder": "inbox"}, says=("in Inbox already",)),
    "to no such folder": one("move", to={"mails": ["@news"], "folder": "cellar"}, says=("no folder 'cellar'",)),
    # marks
    "flagged from now on": then("flag", to={"mails": ["@school"], "mark": "flagged"}, minus=(
        "INBOX: Trip on Friday",), plus=(r"INBOX: Trip on Friday \Flagged",)),
    "not flagged any more": then("flag", to={"mails": ["@page"], "mark": "unflagged"}, minus=(
        r"INBOX: Your statement \Flagged",), plus=("INBOX: Your statement",)),
    "read, allowed": then("flag", to={"mails": ["@news", "@news2"], "mark": "read"}, choice="once", minus=(
        "INBOX: Offers of the week", "INBOX: Offers of the month"), plus=(r"INBOX: Offers of the week \Seen",
        r"INBOX: Offers of the month \Seen")),
    "read, denied": then("flag", to={"mails": ["@news"], "mark": "read"}, choice="deny"),
    "unread again": then("flag", to={"mails": ["@roof"], "mark": "unread"}, minus=(r"INBOX: The roof \Seen",), plus=(
        "INBOX: The roof",)),
    # what is attached
    "saved": then("save", to={"mail": "@bill"}, choice="once", file=("mail/invoice.pdf", b"%PDF-1.4 bill")),
    "saved elsewhere": then("save", to={"mail": "@bill", "path": "bills/nov.pdf"}, choice="once", file=(
        "bills/nov.pdf", b"%PDF-1.4 bill")),
    "not saved": then("save", to={"mail": "@bill"}, choice="deny"),
    "nothing attached": one("save", to={"mail": "@school"}, says=("has no attachment 1",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[ImapServer]:
    with dovecot() as running:
        yield running


@pytest.fixture
def person(server: ImapServer) -> str:
    """Somebody whose mailbox nobody else uses."""
    name = f"p{next(_people)}"
    fill(server, name)
    return name


@pytest.fixture
async def house(
    server: ImapServer, person: str, scripted: ScriptedServer, tmp_path: Path
) -> AsyncIterator[LivingHouse]:
    """A house in Berlin in which Ada's mailbox is connected."""
    place = scripted.origin.removeprefix("http://")
    async with living_house(
        tmp_path / "home", clock=StillClock(NOW), mail_servers=(f"127.0.0.1:{server.port}",), model_hosts=(place,)
    ) as opened:
        await opened.connect(scripted)
        await opened.cortex.accounts.set_time_zone(opened.admin, "Europe/Berlin")
        await connect(opened, server, person)
        yield opened


def with_known(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: with_known(one, known) for name, one in value.items()}
    if isinstance(value, list):
        return [with_known(one, known) for one in value]
    mark, at, key = value.partition("@") if isinstance(value, str) else ("", "", "")
    return f"{mark}{known[key]}" if at and mark in ("", "#") and key in known else value


def uses(scripted: ScriptedServer, *calls: tuple[str, dict[str, Any]]) -> None:
    """Have the model make these calls, a round each, whatever is said."""
    steps = iter([Say(calls=(Use(name, given, is_blind=True),)) for name, given in calls])
    scripted.rules = [rule("", *([lambda asked: next(steps, "Done.")] * (len(calls) + 1)))]


async def asked(house: LivingHouse, words: str, choice: str = "") -> list[ToolResult]:
    """The results of the calls of one message; whoever is asked says `choice`, and without one is not asked."""
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, words)
    if choice:
        request = await house.until(cid, "approval", turn=turn, state="asked")
        await house.cortex.approvals.answer(house.admin, request.payload["approval"], choice)
    await house.until(cid, "turn.end", turn=turn)
    assert bool(choice) == bool(await house.events(cid, "approval"))
    stored = await house.cortex.runtime.db.repository(MessagesRepository, house.admin.id).of_turn(turn)
    return [part for row in stored for part in row.message.parts if isinstance(part, ToolResult)]


@pytest.mark.parametrize("name", REQUESTS)
async def test_what_was_asked_for_comes_out_and_nothing_else(
    house: LivingHouse, scripted: ScriptedServer, server: ImapServer, person: str, name: str
) -> None:
    request = REQUESTS[name]
    before, known = stands(server, person), await ids(house)
    uses(scripted, *((tool, with_known(given, known)) for tool, given in request.calls))
    results = await asked(house, "please", request.choice)
    assert len(results) == len(request.calls)
    text = results[-1].text
    assert set(request.minus) <= set(before)
    assert stands(server, person) == sorted([*(set(before) - set(request.minus)), *request.plus]), text
    assert [words for words in request.says if words not in text] == [], text
    assert [words for words in request.lacks if words in text] == [], text
    assert results[-1].is_error == (request.choice == "deny") or request.says, text
    if request.draft:
        said_in(server.mails("Drafts", person), dict(request.draft))
    path, data = request.file
    files = house.cortex.homes.home_of(house.admin.id).path / "files"
    found = {str(one.relative_to(files)): one.read_bytes() for one in files.rglob("*") if one.is_file()}
    assert found == ({path: data} if path else {})


def said_in(drafts: list[Message], wanted: dict[str, str]) -> None:
    """The one draft says what was to stand there. "": its text; "*": somewhere."""
    (draft,) = drafts
    assert wanted.pop("*", "") in draft.as_string()
    data = draft.get_payload(decode=True)
    assert isinstance(data, bytes)
    found = {name: str(draft[name]) if name else data.decode() for name in wanted}
    assert {name: " ".join(text.split()) for name, text in found.items()} == wanted
