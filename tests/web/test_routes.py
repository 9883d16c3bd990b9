"""Every route there is, by itself: a visitor is sent to log in, another site is refused, headers stand, others' things
are not there. A new route joins these tests by being there; one with a new kind of id has to say whose it is.
"""

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi.routing import APIRoute
from PIL import Image

from cortex.app import Cortex
from cortex.base import messages as message
from cortex.base import scan
from cortex.base.ids import new_id
from cortex.base.turn import agent_turn
from cortex.base.user import User
from cortex.ports.agents import CodingTask
from cortex.ports.loop import UndoOffer
from cortex.services.jobs.forms import JobForm
from cortex.services.tools.skills import SkillsService
from cortex.storage.appointments import AppointmentDateRow, AppointmentRow, AppointmentsRepository
from cortex.storage.approvals import ApprovalsRepository, GrantsRepository
from cortex.storage.calendars import CalendarAccountRow, CalendarRow, CalendarsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.chat_shares import ChatSharesRepository
from cortex.storage.coding import CodingRunsRepository
from cortex.storage.contacts import AddressBookRow, AddressBooksRepository, ContactRow, ContactsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.deliveries import AllDeliveriesRepository, DeliveriesRepository
from cortex.storage.devices import ActionLinksRepository, DevicesRepository
from cortex.storage.home import Home
from cortex.storage.integrations import IntegrationRow, IntegrationsRepository
from cortex.storage.mail import MailAccountRow, MailAccountsRepository, MailFolderRow
from cortex.storage.messages import MessagesRepository
from cortex.storage.messengers import LinkRow, MessengersRepository
from cortex.storage.notices import NoticesRepository, NoticeValues, Way
from cortex.storage.plans import PlansRepository
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.tool_settings import ToolCasesRepository, ToolSettingsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from cortex.storage.undo import UndosRepository
from tests.notify import browser as push
from tests.patience import PATIENCE_S
from tests.plain_world import PLAIN_TURN
from tests.sharing import share
from tests.web.conftest import Browser
from web.app import frame_routes
from web.register import PAGES
from web.routes import LazyRoute
from web.security import CSP

OPEN = {
    "/login",
    "/logout",
    "/setup",
    "/setup/restore",  # with the token of /setup only
    "/welcome",
    "/welcome/who",  # with the code of an invitation
    "/join",  # with a code of one's own
    "/healthz",
    "/help/{guide}",  # for everybody who is logged in, and the same for all of them
    "/hooks/{address}",  # other programs, by a secret of the address
    "/calendar/feed/{person}/{secret}.ics",  # likewise: only read
    "/mcp",  # other programs, by a token
    "/api/chat",
    "/api/embed",
    "/api/embeddings",
    "/api/generate",
    "/api/ps",
    "/api/show",
    "/api/tags",
    "/api/version",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/responses/{rest:path}",
    "/v1/chat/completions",
    "/v1/models",
    "/v1/models/{model:path}",
    "/v1/openapi.json",
    "/healthz/drip",
    "/healthz/seen",
    "/metrics",
    "/readyz",
    "/static/{path:path}",
    "/manifest.webmanifest",
    "/sw.js",
    "/offline",
}
DUG_AT = datetime(2026, 11, 28, 9, tzinfo=UTC)
TRUFFLE_JOB = JobForm(name="Truffle hour", prompt="Dig.", when="every day at 7")
FIELDS = {"version": "1", "by": "1", "text": "words", "choice": "deny", "name": "x", "title": "x", "mode": "auto"}


def routes() -> Iterator[tuple[str, str]]:
    routers = [frame_routes, *(scan.load(f"{PAGES}.{stem}").router for stem in scan.modules(PAGES))]
    for router in routers:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in sorted(route.methods or ()):
                yield method, route.path


def test_the_pages_are_found() -> None:
    assert len(list(routes())) > 60


def test_every_page_works_out_its_routes_when_they_are_asked_for() -> None:
    routers = [frame_routes, *(scan.load(f"{PAGES}.{stem}").router for stem in scan.modules(PAGES))]
    early = [route for router in routers for route in router.routes if not isinstance(route, LazyRoute)]
    assert early == []


def filled(path: str, ids: dict[str, str]) -> str:
    for name, value in {**OF_THE_HOUSE, **ids}.items():
        path = path.replace("{" + name + "}", value)
    return path


OF_THE_HOUSE = {  # these are everybody's
    "group": "limits",
    "tool": "task_create",
    "category": "tasks",
    "number": "1",
    "kind": "web_search",
    "model:path": "cortex",
    "rest:path": "x",
    "server": "shop",
}
IDS = (
    "cid key task_id job_id name skill role login_id user_id approval_id grant_id undo_id summary_id case_id budget_id "
    "notice_id delivery_id device_id token token_id reminder_id run_id coding_id journal_id entry_id fact_id list_id "
    "account_id calendar_id appointment_id book_id contact_id change_id person secret mailbox_id "
    "share_id snippet_id link_id"
)
ANY = dict.fromkeys(IDS.split(), "x")


NO_PAGES = re.compile(
    r"\.(csv|json|md|zip|txt)$|/events$|/callback$|/export$|^/push/key$|^/databases|^/confirm$|/fitting$"
    r"|^/(palette|status|preview|share|notifications/panel)$"
)
OF_SOMETHING = {  # linked where there is something of the kind, or for an admin
    "/c",  # by the keys g c, and by the phone's tabs
    "/lists",
    "/models/connect/here",
    "/start/states",
    "/models/edit",
    "/models/remove",
    "/memory/forget-all",
    "/reminders/clear",
    "/calendar/feed/remove",
    "/admin/push-keys",
}


async def test_every_page_is_reached_by_links(ada: Browser, bob: Browser) -> None:
    pages = {path for method, path in routes() if method == "GET" and "{" not in path} - OPEN
    pages = {path for path in pages - OF_SOMETHING if not NO_PAGES.search(path)}
    for person in (ada, bob):
        wanted = {path for path in pages if person.user.is_admin or not path.startswith("/admin")}
        reached, waiting = {"/"}, ["/c/new"]
        while waiting:
            page = (await person.get(waiting.pop())).text
            links = {link.split("#")[0].split("?")[0] for link in re.findall(r'href="(/[^"]*)"', page)}
            fresh = (links & wanted) - reached
            reached |= fresh
            waiting += fresh
        assert wanted - reached == set()


async def test_the_sidebar_has_seven_pages_at_most(ada: Browser, bob: Browser) -> None:
    for person in (ada, bob):
        side = (await person.get("/tasks")).text.partition('<ul class="nav">')[2].partition("</ul>")[0]
        titles = re.findall(r"</svg>([^<]+)<", side)
        assert 4 < len(titles) <= 7
        assert "More" in titles
        assert ("/admin/users" in (await person.get("/more")).text) == person.user.is_admin
    assert (await bob.get("/admin")).status_code == 403
    assert 'href="/admin' not in (await bob.get("/more")).text


async def test_a_visitor_is_sent_to_log_in_from_every_route(house: Cortex, visitor: httpx.AsyncClient) -> None:
    let_in = {}
    for method, path in routes():
        if path in OPEN:
            continue
        answer = await visitor.request(method, filled(path, ANY))
        is_refused = answer.status_code == 401 or answer.headers.get("location", "").startswith("/login")
        if not is_refused:
            let_in[f"{method} {path}"] = answer.status_code
    assert let_in == {}


async def test_before_the_first_account_every_route_leads_to_set_up(
    empty_house: Cortex, first_visitor: httpx.AsyncClient
) -> None:
    elsewhere = {}
    for method, path in routes():
        if path in OPEN:
            continue
        answer = await first_visitor.request(method, filled(path, ANY))
        if answer.status_code != 401 and answer.headers.get("location") != "/setup":
            elsewhere[f"{method} {path}"] = answer.status_code
    assert elsewhere == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "", "Origin": "http://["},
        {"Sec-Fetch-Site": ""},
    ],
    ids=["cross-site", "same-site", "foreign origin", "no address", "says nothing"],
)
async def test_another_site_can_change_nothing_on_any_route(ada: Browser, headers: dict[str, str]) -> None:
    answered = {}
    for method, path in routes():
        if method in ("GET", "HEAD"):
            continue
        answer = await ada.http.request(method, filled(path, ANY), headers=headers, data=FIELDS)
        # No cookie counts where programs ask: whoever sends there proves itself by a secret or a token.
        is_programs = path.startswith(("/hooks/", "/v1/", "/api/"))
        if answer.status_code != (401 if is_programs or (path == "/mcp" and "Origin" not in headers) else 403):
            answered[f"{method} {path}"] = answer.status_code
    assert answered == {}


async def test_every_answer_carries_the_policy_and_an_id(ada: Browser) -> None:
    without = []
    for method, path in routes():
        if method != "GET" or path.endswith("/events") or path == "/preview":  # tests/web/test_preview.py
            continue
        answer = await ada.get(filled(path, ANY))
        whole = answer.headers.get("content-security-policy") == CSP and answer.headers.get("x-request-id")
        if not whole or answer.headers.get("x-content-type-options") != "nosniff":
            without.append(path)
    assert without == []


async def shared_chat(house: Cortex, user: User, cid: str, turn_id: str) -> str:
    await house.accounts.add_user("Reader", "member", "a few words in a row")
    reader = await house.accounts.named("Reader")
    shares = house.runtime.db.repository(ChatSharesRepository, user.id)
    return (await shares.give(cid, turn_id, [turn_id], [reader.id]))[reader.id]


async def snippet(house: Cortex, user: User) -> str:
    await house.snippets.add(user, "truffle", "Where are the truffles?", is_shared=False)
    return (await house.snippets.list(user))[0].id


async def things_of(house: Cortex, person: Browser) -> dict[str, str]:
    """One of everything that has an id, all of it this person's and all of it about truffles."""
    user, db = person.user, house.runtime.db
    conversation = await house.conversations.new(user)
    turn_id, call_id = f"turn:{new_id()}", new_id()
    later = db.clock() + timedelta(hours=1)
    await db.repository(TurnsRepository, user.id).create(
        NewTurn(turn_id, conversation.id, "truffles", state="done", **PLAIN_TURN)
    )
    await house.conversations.rename(user, conversation.id, "Where truffles grow")
    said = {"turn": turn_id, "text": "truffles", "at": later.isoformat(), "mode": "auto", "is_steer": False}
    await db.repository(ConversationsRepository, user.id).append(conversation.id, [("message", said, turn_id)])
    receipt = await house.tools.explain(user, "orchestrator", "hello")
    await db.repository(PlansRepository, user.id).add(turn_id, 1, receipt)
    lamps = IntegrationRow(kind="web_search", settings={})
    await db.repository(IntegrationsRepository).save(lamps, user.id)
    coded = CodingTask(repository="truffles", message="dig", files=())
    await db.repository(CodingRunsRepository, user.id).begin("coded:1", coded, folder="/srv/truffles", base="0")
    shop = IntegrationRow(kind="mcp", name="shop", settings={"command": "/bin/false"})
    await db.repository(IntegrationsRepository).save(shop, user.id)
    call = CallRow(
        id=call_id,
        turn_id=turn_id,
        conversation_id=conversation.id,
        round=1,
        name="shell_exec",
        arguments="{}",
        arguments_hash="h",
        risk="high",
    )
    await db.repository(CallsRepository, user.id).decided(call)
    approval = await db.repository(ApprovalsRepository, user.id).ask(
        call_id,
        turn_id,
        tool="shell_exec",
        arguments_hash="h",
        destination="this machine",
        verb="Run",
        detail="ls",
        why="you asked",
        risk="high",
        expires_at=later,
    )
    grant = await db.repository(GrantsRepository, user.id).add("shell_exec", "dig", conversation.id, later)
    offer = UndoOffer(category="tasks", target="t", before=None, expected="1", label="Take it back")
    undo = await db.repository(UndosRepository, user.id).add(call_id, offer, later)
    summary = await db.repository(SummariesRepository, user.id).add(conversation.id, 1, "what was said", False)
    await db.repository(MessagesRepository, user.id).add(turn_id, 1, message.user("truffles"), False)
    asked = {
        "kind": "role",
        "subject": "truffler",
        "limit_tokens": "9",
        "limit_usd": "",
        "at_limit": "stop",
        "model": "",
    }
    budget = await house.budget_admin.put(user, asked)
    home = Home(house.settings.home, user.id)
    await home.write("agent_notes/truffler.md", "likes truffles\n")
    await home.write("roles/truffler.md", "---\ntools: [tasks]\n---\nFind truffles.\n")
    await home.write("persona.md", "A truffle hound.\n")
    await house.notes.write_scratchpad(user, "truffles\n", (await house.notes.scratchpad(user)).version)
    await house.models.save(
        user, {"name": "truffle", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9"}
    )
    journal = await house.journals.create(user, "Truffles")
    entry = await house.journals.write(user, house.journals.new_key(), journal.id, "Truffles", "Dug two.")
    return {
        "cid": conversation.id,
        "key": turn_id.removeprefix("turn:"),
        "journal_id": journal.id,
        "entry_id": entry.id,
        "file_id": await picture(house, user),
        "task_id": (await house.tasks.create(user, "Dig truffles", list_name="truffles")).id,
        "list_id": await shared_list(house, person),
        "job_id": (await house.jobs.add(user, TRUFFLE_JOB)).id,
        "name": await house.notes.create(user, "Truffles"),
        "fact_id": (await house.memory.add(user, "I dig truffles.")).id,
        "share_id": await shared_chat(house, user, conversation.id, turn_id),
        "snippet_id": await snippet(house, user),
        "skill": await SkillsService(db, house.tools).create(user, "Truffle dig", "Where truffles are dug"),
        "role": "truffler",
        "token_id": await api_token(house, user),
        "login_id": (await house.accounts.logins(user))[0].id,
        "user_id": user.id,
        "approval_id": approval.id,
        "grant_id": grant.id,
        "undo_id": undo.id,
        "summary_id": summary.id,
        "budget_id": budget.id,
        "coding_id": "coded:1",
        **await told_things(house, person),
        **await calendar_things(house, user),
        "mailbox_id": await mailbox(house, user),
        "link_id": await messenger_link(house, user),
        "reminder_id": (await house.reminders.add(user, "dig truffles tomorrow at 9")).id,
        "run_id": await agent_run(house, person, conversation.id, turn_id),
        "case_id": (await db.repository(ToolCasesRepository).add("truffles", "truffler", "admin", (), user.id)).id,
    }


async def api_token(house: Cortex, user: User) -> str:
    """A token of a program that looks for truffles."""
    await house.api_tokens.make(user, {"name": "Truffle finder", "role": "orchestrator"})
    return (await house.api_tokens.list(user))[0].token.id


async def shared_list(house: Cortex, person: Browser) -> str:
    """Truffles shared with somebody else again."""
    carol = (await house.accounts.add_user("Carol", "member", None)).user
    await house.tasks.create(carol, "Oak", list_name="truffle woods")
    await share(house.runtime.db, carol.id, "truffle woods", [person.user.id])
    (row,) = await house.runtime.db.repository(SharedListsRepository, person.user.id).list()
    await house.tasks.create(person.user, "Beech", list_name="truffle trees")
    await house.shared_lists.share(person.user, "truffle trees", [carol.id])
    return row.id


async def picture(house: Cortex, user: User) -> str:
    data = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(data, "PNG")
    size_bytes = data.tell()
    data.seek(0)
    return (await house.documents.give(user, "truffles.png", data, size_bytes)).id


async def agent_run(house: Cortex, person: Browser, parent_id: str, turn_id: str) -> str:
    """A background agent that looks for truffles, on paper: no engine runs it."""
    async with house.runtime.db.transaction(person.user.id) as repository:
        made = await repository(ConversationsRepository).create(
            "truffler", "auto", "Truffles", source="agent", parent_id=parent_id, is_title_tainted=False
        )
        await repository(TurnsRepository).create(
            NewTurn(
                agent_turn(turn_id, made.id),
                made.id,
                "Find truffles",
                mode="auto",
                role="truffler",
                channel="agent",
                is_tainted=False,
                reads=NOTHING_READ,
            )
        )
    return made.id


async def messenger_link(house: Cortex, user: User) -> str:
    """Their account at a messenger."""
    row = LinkRow(
        id="link:1", owner_id=user.id, messenger="telegram", sender="11", chat="11", name="Truffle", created_at=DUG_AT
    )
    await house.runtime.db.repository(MessengersRepository, user.id).add_link(row)
    return row.id


async def calendar_things(house: Cortex, user: User) -> dict[str, str]:
    """A calendar with an appointment about truffles."""
    now = house.runtime.clock()
    account = CalendarAccountRow(
        id="cal:1", owner_id=user.id, kind="ics", title="Truffles", url="https://truffles.example", username="",
        addresses="", created_at=now, next_at=now + timedelta(days=1), worked_at=now, failure="", failures=0,
        schedules=False,
    )  # fmt: skip
    calendar = CalendarRow(
        id="cal:2", owner_id=user.id, account_id=account.id, url="", name="Truffles", color="", can_write=False,
        access="read", shared_as="", token="", unfolded_until=now, worked_at=now,
        zone="",
    )  # fmt: skip
    row = AppointmentRow(
        id="cal:3", owner_id=user.id, calendar_id=calendar.id, href="x", etag="1", uid="x", title="Dig truffles",
        place="", rule="", is_free=False, rest="{}",
    )  # fmt: skip
    date = AppointmentDateRow(
        appointment_id=row.id, key="", owner_id=user.id, calendar_id=calendar.id, starts_at=DUG_AT,
        ends_at=DUG_AT + timedelta(hours=1), day="", last_day="", title=None, place=None,
    )  # fmt: skip
    await house.runtime.db.repository(CalendarsRepository, user.id).add(account, [calendar])
    await house.runtime.db.repository(AppointmentsRepository, user.id).replace(calendar.id, ["x"], [(row, [date])])
    book = AddressBookRow(
        id="book:1", owner_id=user.id, account_id=account.id, url="https://truffles.example/people/", name="Truffles",
        can_write=True, access="read", is_shared=False, token="", worked_at=now,
    )  # fmt: skip
    contact = ContactRow(
        id="contact:1", owner_id=user.id, book_id=book.id, href="x", etag="1", uid="x", name="Truffle finder",
        key="truffle finder", words="truffle finder", birthday="", rest="{}",
    )  # fmt: skip
    await house.runtime.db.repository(AddressBooksRepository, user.id).add([book])
    await house.runtime.db.repository(ContactsRepository, user.id).replace(book.id, ["x"], [contact])
    people = {"book_id": book.id, "contact_id": contact.id}
    ids = {"account_id": account.id, "calendar_id": calendar.id, "appointment_id": row.id, "change_id": "undo:nobody"}
    return {**ids, **people, "person": user.id, "secret": "feed:nobody"}


async def mailbox(house: Cortex, user: User) -> str:
    """A mailbox in which truffles are spoken of."""
    now = house.runtime.clock()
    account = MailAccountRow(
        id="mail:1", owner_id=user.id, address="dig@truffles.example", host="imap.truffles.example", port=993,
        security="tls", username="dig", way="password", created_at=now, next_at=now + timedelta(days=1), worked_at=now,
        failure="", failures=0,
    )  # fmt: skip
    folder = MailFolderRow(
        id="mail:2", owner_id=user.id, account_id=account.id, path="Truffles", name="Truffles", role="", is_read=True,
        uidvalidity=1, state="", lacking=0, read_at=now,
    )  # fmt: skip
    await house.runtime.db.repository(MailAccountsRepository, user.id).add(account, [folder])
    return account.id


async def told_things(house: Cortex, person: Browser) -> dict[str, str]:
    """A notice about truffles with a delivery that failed and a button, and a browser that takes push."""
    user, db = person.user, house.runtime.db
    browser = push.Browser().target("https://push.example/truffles")
    device = await db.repository(DevicesRepository, user.id).add(
        endpoint=browser.address,
        p256dh=browser.key,
        auth=browser.secret,
        signed_for="",
        login_id=None,
        name="Truffle phone",
        agent="",
    )
    values = NoticeValues(kind="system", title="Truffles are ripe", text="Dig.", actions=("ack",), is_tainted=False)
    async with db.transaction(user.id) as repository:
        await repository(NoticesRepository).add("n:truffles", values, [Way(channel="email")])
        await repository(ActionLinksRepository).add("t:truffles", "n:truffles", "ack", db.clock() + timedelta(hours=1))
    (row,) = await db.repository(AllDeliveriesRepository).take("email", 1, 60.0)
    await db.repository(DeliveriesRepository, user.id).end(row.id, row.attempt, "failed", "the server said no")
    assert await house.notices.unread(user.id)
    return {"notice_id": "n:truffles", "delivery_id": row.id, "device_id": device.id, "token": "t:truffles"}


async def state_of(house: Cortex, person: Browser, ids: dict[str, str]) -> list[object]:
    """Everything that another could have changed."""
    user, db = person.user, house.runtime.db
    return [
        await house.tasks.list(user),
        await house.tasks.lists(user),
        await house.reminders.listing(user),
        await house.agents.list(user.id, 9),
        await house.jobs.list(user),
        [(note, await house.notes.read(user, note.name)) for note in await house.notes.list(user)],
        await house.notes.scratchpad(user),
        await house.journals.shelf(user),
        await house.journals.history(user, ids["entry_id"]),
        [(one.fact, await house.memory.history(user, one.fact.id)) for one in (await house.memory.view(user)).kept],
        await SkillsService(db, house.tools).read(user, ids["skill"]),
        await house.notes.agent_notes(user),
        await house.snippets.list(user),
        await house.chat_sharing.of_chat(user, ids["cid"]),
        await house.models.registry(user),
        await house.preferences.get(user),
        await house.preferences.persona(user),
        [login.id for login in await house.accounts.logins(user)],
        await house.conversations.get(user, ids["cid"]),
        await db.repository(ConversationsRepository, user.id).events(ids["cid"]),
        await db.repository(TurnsRepository, user.id).list(ids["cid"], include_dropped=True),
        await db.repository(ApprovalsRepository, user.id).pending(),
        await db.repository(GrantsRepository, user.id).list(),
        await db.repository(UndosRepository, user.id).get(ids["undo_id"]),
        await db.repository(SummariesRepository, user.id).latest(ids["cid"]),
        await db.repository(ToolSettingsRepository).number(),
        await db.repository(ToolCasesRepository).all(),
        await db.repository(IntegrationsRepository).list(),
        await house.roles.in_force(user, "truffler"),
        await house.budget_admin.list(),
        await house.api_tokens.list(user),
        await house.notices.page(user.id),
        await house.devices.list(user),
        await db.repository(ActionLinksRepository, user.id).get(ids["token"]),
        await house.calendar_accounts.list(user),
        await house.mail_accounts.list(user),
        await db.repository(MessengersRepository, user.id).links(),
        await db.repository(AppointmentsRepository, user.id).count(ids["calendar_id"]),
        await db.repository(AddressBooksRepository, user.id).book(ids["book_id"]),
        await db.repository(ContactsRepository, user.id).count([ids["book_id"]]),
    ]


async def answers_to(person: Browser, paths: list[tuple[str, str]], ids: dict[str, str]) -> dict[str, int]:
    """What this person is answered on these routes, filled with these ids."""
    found = {}
    for method, path in paths:
        query = {"before": "9", "after": "0"} if method == "GET" else {}
        query["at"] = DUG_AT.isoformat()
        answer = await person.http.request(
            method, filled(path, ids), params=query, data={**FIELDS, "at": query["at"]}, timeout=PATIENCE_S
        )
        found[f"{method} {path}"] = answer.status_code
    return found


async def test_what_belongs_to_another_is_not_there_on_any_route(house: Cortex, ada: Browser, bob: Browser) -> None:
    ids = await things_of(house, ada)
    before = await state_of(house, ada, ids)
    named = [(method, path) for method, path in routes() if "{" in path and path not in OPEN]
    kinds = {kind for _, path in named for kind in re.findall(r"{(\w+)}", path)}
    assert kinds <= ids.keys() | OF_THE_HOUSE.keys(), "say above whose this new kind of id is"
    answered = await answers_to(bob, named, ids)
    assert {route: code for route, code in answered.items() if code != (403 if "/admin/" in route else 404)} == {}
    assert await state_of(house, ada, ids) == before


@pytest.mark.parametrize(
    "step", [pytest.param(1, id="each id", marks=pytest.mark.full), pytest.param(12, id="a twelfth")]
)
async def test_no_id_of_anothers_opens_anything_in_any_place(
    house: Cortex, ada: Browser, bob: Browser, step: int
) -> None:
    ids = await things_of(house, ada)
    before = await state_of(house, ada, ids)
    named = [(method, path) for method, path in routes() if "{" in path and path not in OPEN]
    tried = 0
    opened: dict[str, int] = {}
    for one in sorted(set(ids.values()))[::step]:
        answered = await answers_to(bob, named, dict.fromkeys(ids, one))
        tried += len(answered)
        opened |= {f"{route} {one}": code for route, code in answered.items() if code not in (403, 404, 422)}
    assert opened == {}
    assert tried > 2_000 / step  # a third of what an attack tried: every id in every place there is
    assert await state_of(house, ada, ids) == before


async def test_anothers_turn_is_not_reached_through_a_conversation_of_ones_own(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    ids = await things_of(house, ada)
    before = await state_of(house, ada, ids)
    mine = await house.conversations.new(bob.user)
    mixed = [(method, path) for method, path in routes() if "{cid}" in path and path.count("{") > 1]
    answered = await answers_to(bob, mixed, {**ids, "cid": mine.id})
    assert len(answered) >= 5
    assert set(answered.values()) == {404}
    assert await state_of(house, ada, ids) == before


async def test_anothers_things_named_in_a_query_or_a_form_are_not_there(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    ids = await things_of(house, ada)
    before = await state_of(house, ada, ids)
    refused = [
        await bob.get("/models/edit?name=truffle"),
        await bob.get("/models/remove?name=truffle"),
        await bob.post("/models/remove?name=truffle"),
        await bob.post("/models/test-saved", name="truffle"),
        await bob.post("/models", previous="truffle", name="mine", provider="openai", model="m"),
        await bob.post("/preview-tools", cid=ids["cid"], text="hello"),
        await bob.post("/why", cid=ids["cid"], text="hello"),
    ]
    assert [answer.status_code for answer in refused] == [404] * len(refused)
    assert (await bob.post("/models/chain", names="truffle")).status_code == 422
    assert (await bob.post("/account/chats", role="truffler")).status_code == 422
    assert await state_of(house, ada, ids) == before


async def test_no_page_of_ones_own_shows_anything_of_anothers(house: Cortex, ada: Browser, bob: Browser) -> None:
    ids = await things_of(house, ada)
    gets = [path for method, path in routes() if method == "GET" and not path.endswith("/events")]
    plain = [path for path in gets if "{" not in path and path not in OPEN]
    searched = [
        "/tasks?q=dig",
        "/tasks?done=1",
        "/journals?q=dug",
        "/search?q=grow",
        "/search?q=where",
        "/memory?q=dig",
    ]
    asked = [*plain, *searched]
    told: dict[str, list[str]] = {"Ada": [], "Bob": []}
    for name, person in (("Ada", ada), ("Bob", bob)):
        for path in asked:
            page = (await person.http.get(path, follow_redirects=True)).text
            if "ruffle" in page or any(one in page for one in ids.values()):
                told[name].append(path)
    assert told["Bob"] == []
    assert {"/notifications", "/account/devices"} <= set(told["Ada"])
    assert {"/memory", "/memory/export.md", "/memory/export.json", "/memory?q=dig"} <= set(told["Ada"])
    assert {
        "/tasks",
        "/jobs",
        "/notes",
        "/journals",
        "/journals?q=dug",
        "/skills",
        "/scratchpad",
        "/models",
        "/account/roles",
        "/search?q=grow",
    } <= set(told["Ada"])


async def test_the_owner_does_find_them(house: Cortex, ada: Browser) -> None:
    ids = await things_of(house, ada)
    named = [path for method, path in routes() if method == "GET" and "{" in path and path not in OPEN]
    missing = {}
    for path in named:
        if not path.endswith("/events"):
            query = {"before": "9", "at": DUG_AT.isoformat()}
            answer = await ada.http.get(filled(path, ids), params=query, follow_redirects=True)
            missing[path] = answer.status_code
    assert {path: code for path, code in missing.items() if code != 200} == {}
