"""What people are told, by what it goes out, and who may answer it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotAllowed, NotFound, UserError
from cortex.notify import ChannelRegister
from cortex.ports.channels import ChannelName, NoticeKind, Urgency
from cortex.services.accounts.accounts import LoginView
from cortex.services.notices.action_links import PATH
from cortex.services.notices.notices import NoticeFilter, NoticeRow
from cortex.services.notices.preferences import Choices, Means, ways
from cortex.storage import notices as rows
from cortex.storage.approvals import ApprovalRow
from cortex.storage.db import Database
from cortex.storage.notices import NoticeValues
from cortex.storage.secrets import SecretsRepository
from tests.databases import everything
from tests.living_house import PASSWORD, LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.services.notices.notices_world import ADA, BOB, TEA, NoticesWorld, made_world
from tests.still_clock import StillClock

HOME = "https://ntfy.example.org/plants"
HOOK = "https://hooks.example.org/cortex"
CHANNELS = ChannelRegister().held
ALL = Means(
    channels={name: CHANNELS[name] for name in ("web_push", "email", "ntfy", "webhook")}, devices=("phone", "desk")
)
MAIL_ONLY = Means(channels={"email": CHANNELS["email"]})
BERLIN = Choices(quiet="22:00-07:00", time_zone="Europe/Berlin")
EVENING = datetime(2026, 11, 20, 21, 30, tzinfo=UTC)  # 22:30 there
MORNING = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


@pytest.fixture
async def world(db: Database, clock: StillClock, tmp_path: Path) -> NoticesWorld:
    return await made_world(db, clock, tmp_path / "home")


def values(kind: NoticeKind = "job", urgency: Urgency = "normal", expires_at: datetime | None = None) -> NoticeValues:
    return NoticeValues(kind=kind, title="News", text="", urgency=urgency, expires_at=expires_at, is_tainted=False)


@pytest.mark.parametrize(
    ("told", "choices", "means", "names"),
    [
        (values(), Choices(), ALL, ["web_push", "web_push", "ntfy", "webhook"]),
        (values(urgency="important"), Choices(), ALL, ["web_push", "web_push", "ntfy", "webhook"]),
        (values(urgency="high"), Choices(), ALL, ["web_push", "web_push", "email", "ntfy", "webhook"]),
        (values("digest"), Choices(), ALL, ["web_push", "web_push", "email", "ntfy", "webhook"]),
        (values(), Choices(), MAIL_ONLY, ["email"]),
        (values(), Choices(), Means(), []),
        (values(), Choices(muted=("job",)), ALL, []),
        (values("system"), Choices(muted=("job",)), MAIL_ONLY, ["email"]),
        (values(), Choices(channels={"job": ("email", "ntfy")}), ALL, ["email", "ntfy"]),
        (values(), Choices(channels={"job": ()}), ALL, []),
        (values("agent"), Choices(channels={"job": ()}), MAIL_ONLY, ["email"]),
        (values(urgency="low"), Choices(digest_hour=8), ALL, []),
        (values(urgency="low"), Choices(), MAIL_ONLY, ["email"]),
    ],
    ids=[
        "usual",
        "important goes the usual ways",
        "urgent goes to the mailbox too",
        "digest too",
        "mail where there is no other way",
        "no way at all",
        "muted",
        "another kind muted",
        "chosen",
        "chosen: the page alone",
        "another kind chosen",
        "low waits for the digest",
        "low without a digest",
    ],
)
def test_where_a_notice_goes(told: NoticeValues, choices: Choices, means: Means, names: list[ChannelName]) -> None:
    found = ways(told, choices, means, EVENING)
    assert [way.channel for way in found] == names
    assert [way.device_id for way in found if way.channel == "web_push"] == list(means.devices)[
        : names.count("web_push")
    ]


@pytest.mark.parametrize(
    ("told", "at", "held_until"),
    [
        (values(), EVENING, MORNING),
        (values(), MORNING - timedelta(seconds=1), MORNING),
        (values(), MORNING, None),
        (values(urgency="important"), EVENING, None),
        (values(urgency="high"), EVENING, None),
        (values(expires_at=MORNING), EVENING, None),
        (values(expires_at=MORNING + timedelta(minutes=1)), EVENING, MORNING),
    ],
    ids=["at night", "at its end", "in the morning", "important", "urgent", "over before", "over later"],
)
def test_quiet_hours_of_the_persons_zone_hold_back(
    told: NoticeValues, at: datetime, held_until: datetime | None
) -> None:
    assert {way.not_before for way in ways(told, BERLIN, ALL, at)} == {held_until}


async def test_what_is_told_under_the_same_key_is_told_once(world: NoticesWorld) -> None:
    await world.addresses.put(ADA, "ntfy", HOME)
    first = await world.notices.notify(ADA.id, TEA)
    again = await world.notices.notify(ADA.id, replace(TEA, text="Again."))
    theirs = await world.notices.notify(BOB.id, TEA)
    assert again == first != theirs
    (view,) = (await world.notices.page(ADA.id)).notices
    assert (view.row.text, [row.channel for row in view.deliveries]) == ("The fern first.", ["ntfy"])
    assert (await world.notices.get(BOB.id, theirs)).deliveries == ()


async def test_a_draft_stands_and_falls_with_what_it_tells_of(world: NoticesWorld) -> None:
    draft = await world.notices.prepare(ADA.id, TEA)

    async def tell_and_fail() -> None:
        async with world.db.transaction(ADA.id) as repository:
            await draft.write(repository)
            await repository(rows.NoticesRepository).get("nowhere")

    with pytest.raises(NotFound):
        await tell_and_fail()
    assert await world.notices.unread(ADA.id) == 0
    async with world.db.transaction(ADA.id) as repository:
        assert await draft.write(repository)
    assert await world.notices.unread(ADA.id) == 1


def test_a_notice_leads_to_pages_of_ours_alone() -> None:
    with pytest.raises(ValueError, match="no path of a page of ours"):
        replace(TEA, path="//elsewhere.example")


async def test_open_pages_hear_of_what_is_told(world: NoticesWorld) -> None:
    notices = world.notices
    heard = await notices.changed(ADA.id, -1, 0)
    theirs = await notices.changed(BOB.id, -1, 0)
    id = await notices.notify(ADA.id, TEA)
    assert (after := await notices.changed(ADA.id, heard, 0)) > heard
    assert await notices.read(ADA.id, [id]) == 1
    assert await notices.changed(ADA.id, after, 0) > after
    assert await notices.changed(BOB.id, theirs, 0) == theirs


async def test_a_muted_kind_stands_in_the_list_and_raises_no_number(world: NoticesWorld) -> None:
    job = replace(TEA, kind="job")
    await world.notices.notify(ADA.id, replace(job, key="before"))
    await world.notices.notify(ADA.id, TEA)
    heard = await world.notices.changed(ADA.id, -1, 0)
    await world.notification_preferences.change(ADA, muted=["job"])
    assert await world.notices.changed(ADA.id, heard, 0) > heard
    await world.notices.notify(ADA.id, replace(job, key="while"))
    assert await world.notices.unread(ADA.id) == 1
    assert len((await world.notices.page(ADA.id)).notices) == 3
    unread = (await world.notices.page(ADA.id, NoticeFilter(is_unread=True))).notices
    assert [view.row.kind for view in unread] == ["reminder"]
    await world.notification_preferences.change(ADA, muted=[])
    await world.notices.notify(ADA.id, replace(job, key="after"))
    assert await world.notices.unread(ADA.id) == 2


async def test_the_list_has_no_gap_between_its_pages(world: NoticesWorld) -> None:
    for number in range(60):
        await world.notices.notify(ADA.id, replace(TEA, key=str(number), title=str(number)))
    first = await world.notices.page(ADA.id)
    rest = await world.notices.page(ADA.id, before_id=first.earlier)
    assert {view.row.title for view in (*first.notices, *rest.notices)} == {str(number) for number in range(60)}
    assert (len(first.notices), rest.earlier) == (50, "")
    assert (await world.notices.page(ADA.id, NoticeFilter(kinds=("job",)))).notices == ()


async def test_an_answer_goes_to_who_listens_for_the_kind_once(world: NoticesWorld) -> None:
    heard: list[tuple[str, str, str]] = []

    async def listen(user_id: str, notice: NoticeRow, choice: str) -> None:
        heard.append((user_id, notice.subject_id, choice))

    notices = replace(world.notices, answered={"reminder": listen})
    one = await notices.notify(ADA.id, replace(TEA, subject_id="fern"))
    two = await notices.notify(ADA.id, replace(TEA, key="two", subject_id="moss"))
    await notices.acknowledge(ADA.id, one)
    await notices.acknowledge(ADA.id, one)
    await notices.snooze(ADA.id, two, "1h")
    assert heard == [(ADA.id, "fern", ""), (ADA.id, "moss", "1h")]
    assert await notices.unread(ADA.id) == 0


async def test_what_the_listener_refuses_is_not_marked(world: NoticesWorld) -> None:
    async def refuse(user_id: str, notice: NoticeRow, choice: str) -> None:
        raise Conflict("It was changed meanwhile.")

    notices = replace(world.notices, answered={"reminder": refuse})
    id = await notices.notify(ADA.id, TEA)
    with pytest.raises(Conflict):
        await notices.acknowledge(ADA.id, id)
    assert (await notices.get(ADA.id, id)).row.acknowledged_at is None


async def test_what_nobody_brings_back_cannot_be_snoozed(world: NoticesWorld) -> None:
    id = await world.notices.notify(ADA.id, replace(TEA, kind="job"))
    with pytest.raises(UserError, match="can't be snoozed"):
        await world.notices.snooze(ADA.id, id, "1h")


async def test_another_users_notices_are_out_of_reach(world: NoticesWorld) -> None:
    await world.addresses.put(ADA, "ntfy", HOME)
    notices = world.notices
    id = await notices.notify(ADA.id, replace(TEA, actions=("ack",)))
    (delivery,) = (await notices.get(ADA.id, id)).deliveries
    (button,) = await world.action_links.made((await notices.get(ADA.id, id)).row, delivery.id)
    token = button.path.removeprefix(PATH)
    attempts: tuple[Awaitable[object], ...] = (
        notices.get(BOB.id, id),
        notices.acknowledge(BOB.id, id),
        notices.snooze(BOB.id, id, "1h"),
        notices.page(BOB.id, before_id=id),
        notices.send_again(BOB.id, delivery.id),
        world.devices.shown(BOB, delivery.id),
        world.action_links.preview(await world.login(BOB, "bobs"), token),
        world.action_links.press(await world.login(BOB, "bobs"), token),
    )
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt
    assert await notices.read(BOB.id, [id]) == 0
    assert await notices.unread(ADA.id) == 1


async def test_a_button_acts_once_and_only_its_hash_is_kept(world: NoticesWorld) -> None:
    id = await world.notices.notify(ADA.id, replace(TEA, actions=("ack",)))
    row = (await world.notices.get(ADA.id, id)).row
    (button,) = await world.action_links.made(row, "delivery-1")
    assert await world.action_links.made(row, "delivery-1") == (button,)
    (other,) = await world.action_links.made(row, "delivery-2")
    assert other != button
    token, login = button.path.removeprefix(PATH), await world.login()
    found = await world.action_links.preview(login, token)
    assert (found.action, found.is_used, found.needs_password) == ("ack", False, False)
    assert await world.action_links.press(login, token) == "/reminders"
    assert (await world.notices.get(ADA.id, id)).row.acknowledged_at is not None
    with pytest.raises(Conflict):
        await world.action_links.press(login, token)
    assert token not in await everything(world.db)


async def test_a_late_yes_needs_the_password_and_a_late_no_does_not(world: NoticesWorld, clock: StillClock) -> None:
    id = await world.notices.notify(ADA.id, replace(TEA, kind="approval", actions=("approve", "deny")))
    row = (await world.notices.get(ADA.id, id)).row
    approve, deny = await world.action_links.made(row, "delivery-1")
    login = await world.login()
    clock.forward(minutes=6)
    assert (await world.action_links.preview(login, approve.path.removeprefix(PATH))).needs_password
    with pytest.raises(NotAllowed, match="Confirm your password"):
        await world.action_links.press(login, approve.path.removeprefix(PATH))
    confirmed = replace(login, is_confirmed=True)
    assert not (await world.action_links.preview(confirmed, approve.path.removeprefix(PATH))).needs_password
    assert not (await world.action_links.preview(login, deny.path.removeprefix(PATH))).needs_password


async def test_choices_are_kept_and_go_back_to_what_is_usual(world: NoticesWorld) -> None:
    choices = world.notification_preferences
    await choices.change(ADA, quiet="9:30 to 10:00", muted=["job"], digest_hour="8", content=["email"])
    kept = await choices.change(ADA, channels={"reminder": ["ntfy"], "job": []})
    assert kept == await choices.choices_of(ADA.id)
    assert kept == Choices(
        quiet="09:30-10:00",
        muted=("job",),
        channels={"reminder": ("ntfy",), "job": ()},
        digest_hour=8,
        content=("email",),
        time_zone="Europe/Berlin",
    )
    assert await choices.choices_of(BOB.id) == Choices(time_zone="Europe/Berlin")
    await choices.usual_again(ADA)
    assert await choices.choices_of(ADA.id) == Choices(time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("quiet", {"quiet": "at night"}),
        ("muted", {"muted": ["weather"]}),
        ("channels", {"channels": {"job": ["pigeon"]}}),
        ("channels", {"channels": {"weather": ["email"]}}),
        ("digest_hour", {"digest_hour": "24"}),
        ("content", {"content": ["pigeon"]}),
    ],
    ids=["quiet", "kind", "channel", "kind of a channel", "hour", "content"],
)
async def test_a_wrong_choice_names_its_field_and_changes_nothing(
    world: NoticesWorld, field: str, given: dict[str, object]
) -> None:
    with pytest.raises(UserError) as caught:
        await world.notification_preferences.change(ADA, **given)  # type: ignore[arg-type]  # as a form would
    assert caught.value.field == field
    assert await world.notification_preferences.choices_of(ADA.id) == Choices(time_zone="Europe/Berlin")


async def test_an_address_is_kept_sealed_and_its_page_shows_the_server_alone(world: NoticesWorld) -> None:
    await world.addresses.put(ADA, "ntfy", HOME, "tk_plants")
    sealed = await world.db.repository(SecretsRepository, ADA.id).get("reach:ntfy")
    assert sealed is not None
    assert b"plants" not in sealed
    views = {view.name: view for view in await world.addresses.views(ADA)}
    assert (views["ntfy"].address, views["ntfy"].has_secret) == ("https://ntfy.example.org/…", True)
    assert views["webhook"].address == ""
    assert "Mail server" in views["email"].lacks
    assert (await world.addresses.views(BOB))[1].address == ""


async def test_a_secret_goes_on_with_its_server_and_to_no_other(world: NoticesWorld) -> None:
    addresses = world.addresses
    await addresses.put(ADA, "ntfy", HOME, "tk_plants")
    await addresses.put(ADA, "ntfy", "https://ntfy.example.org/moss")
    kept = await addresses.target(ADA.id, "ntfy")
    assert kept is not None
    assert kept.secret == "tk_plants"
    await addresses.put(ADA, "ntfy", "https://ntfy.example.net/moss")
    moved = await addresses.target(ADA.id, "ntfy")
    assert moved is not None
    assert moved.secret == ""


async def test_a_webhook_is_given_a_secret_that_is_shown_once(world: NoticesWorld) -> None:
    made = await world.addresses.put(ADA, "webhook", HOOK)
    assert made.startswith("whsec_")
    assert await world.addresses.put(ADA, "webhook", HOOK) == ""
    kept = await world.addresses.target(ADA.id, "webhook")
    assert kept is not None
    assert kept.secret == made


@pytest.mark.parametrize(
    ("channel", "address", "says"),
    [
        ("ntfy", "http://ntfy.example.org/plants", "https://"),
        ("webhook", "ftp://example.org", "web address"),
        ("email", "ada@example.org", "mail server"),
    ],
)
async def test_an_address_that_cannot_be_used_is_refused(
    world: NoticesWorld, channel: str, address: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        await world.addresses.put(ADA, channel, address)
    assert await world.addresses.named(ADA.id) == frozenset()


async def test_a_removed_address_is_gone(world: NoticesWorld) -> None:
    await world.addresses.put(ADA, "ntfy", HOME)
    with pytest.raises(NotFound):
        await world.addresses.remove(BOB, "ntfy")
    await world.addresses.remove(ADA, "ntfy")
    assert await world.addresses.target(ADA.id, "ntfy") is None
    with pytest.raises(NotFound):
        await world.addresses.remove(ADA, "ntfy")


# --- questions that wait for a yes


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "living") as opened:
        yield opened


async def asked(house: LivingHouse, conversation_id: str) -> str:
    """A call that waits for a yes, in a conversation that is open all the time; the approval's id."""
    stream = asyncio.create_task(house.until(conversation_id, "approval", state="asked"))
    await asyncio.sleep(0)
    await house.cortex.chat.send_message(house.admin, conversation_id, "run `echo hi` in the shell")
    return str((await stream).payload["approval"])


async def questions(house: LivingHouse) -> list[NoticeRow]:
    page = await house.cortex.notices.page(house.admin.id, NoticeFilter(kinds=("approval",)))
    return [view.row for view in page.notices]


async def unwatched(house: LivingHouse, conversation_id: str, words: str = "run `echo hi` in the shell") -> str:
    """The same with no stream open: that would be somebody who watches."""
    before = len(await house.cortex.approvals.pending(house.admin))
    await house.cortex.chat.send_message(house.admin, conversation_id, words)
    pending: Sequence[ApprovalRow] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(pending) <= before:
            await asyncio.sleep(0.05)
            pending = await house.cortex.approvals.pending(house.admin)
    return pending[-1].id


async def test_a_question_is_told_when_nobody_has_the_conversation_open(house: LivingHouse) -> None:
    cid = await house.conversation()
    approval_id = await unwatched(house, cid)
    (row,) = await questions(house)
    # A command cannot be undone: it is allowed on its card alone, never from a lock screen.
    assert (row.subject_id, row.path, row.actions) == (approval_id, f"/c/{cid}", ("deny",))
    assert "echo hi" in row.text
    assert row.acknowledged_at is None
    heard = await house.cortex.notices.changed(house.admin.id, -1, 0)
    await house.cortex.approvals.answer(house.admin, approval_id, "deny")
    assert await house.cortex.notices.changed(house.admin.id, heard, 0) > heard
    (settled,) = await questions(house)
    assert settled.acknowledged_at is not None
    assert await house.cortex.notices.unread(house.admin.id) == 0


async def test_a_question_waits_half_a_day_in_however_many_chats(house: LivingHouse) -> None:
    for _ in range(3):
        await unwatched(house, await house.conversation())
    pending = await house.cortex.approvals.pending(house.admin)
    assert [round((one.expires_at - one.created_at) / timedelta(minutes=1)) for one in pending] == [720, 720, 720]
    until = {row.subject_id: row.expires_at for row in await questions(house)}
    assert until == {one.id: one.expires_at for one in pending}  # as long as the question, so long its notice


async def test_a_question_waits_on_over_a_restart_until_its_end(tmp_path: Path) -> None:
    async with living_house(tmp_path / "again") as house:
        cid = await house.conversation()
        approval_id = await unwatched(house, cid)
    async with living_house(tmp_path / "again") as house:
        await house.cortex.approvals.answer(house.admin, approval_id, "once")
        assert (await house.until(cid, "tool.result")).payload["state"] == "ok"


async def test_a_question_on_an_open_page_is_not_told_at_once_and_waits_as_long(house: LivingHouse) -> None:
    cid = await house.conversation()
    approval_id = await asked(house, cid)
    assert await questions(house) == []
    (question,) = await house.cortex.approvals.pending(house.admin)
    assert round((question.expires_at - question.created_at) / timedelta(minutes=1)) == 720
    await house.cortex.approvals.answer(house.admin, approval_id, "deny")


async def light(house: LivingHouse) -> tuple[LoginView, str, str, str, str]:
    """A login, a conversation that waits for a yes to what can be undone, the request, the links of yes and no."""
    await house.cortex.tool_settings.change(house.admin, "task_create", is_on=True, sending="needed", asks_first=True)
    cid = await house.conversation()
    approval_id = await unwatched(house, cid, "add milk to my todo list")
    (row,) = await questions(house)
    approve, deny = await house.cortex.action_links.made(row, "delivery-1")
    token = await house.cortex.accounts.login(house.admin.name, PASSWORD, "127.0.0.1", "Firefox")
    login = await house.cortex.accounts.who(token)
    assert login is not None
    return login, cid, approval_id, approve.path.removeprefix(PATH), deny.path.removeprefix(PATH)


async def test_a_yes_on_a_lock_screen_is_taken_only_where_its_words_are_shown(house: LivingHouse) -> None:
    login, cid, approval_id, approve, _ = await light(house)
    assert not await house.cortex.action_links.press_at_once(login, approve)
    assert [one.id for one in await house.cortex.approvals.pending(house.admin)] == [approval_id]
    await house.cortex.notification_preferences.change(house.admin, content=["web_push"])
    assert await house.cortex.action_links.press_at_once(login, approve)
    assert (await house.until(cid, "tool.result")).payload["state"] == "ok"
    with pytest.raises(Conflict):
        await house.cortex.action_links.press_at_once(login, approve)


async def test_a_no_on_a_lock_screen_is_taken_as_it_is(house: LivingHouse) -> None:
    login, cid, _, _, deny = await light(house)
    assert await house.cortex.action_links.press_at_once(login, deny)
    assert await house.until(cid, "approval", state="denied")


async def test_an_older_link_to_allow_what_cannot_be_undone_asks_on_its_page(house: LivingHouse) -> None:
    await house.cortex.notification_preferences.change(house.admin, content=["web_push"])
    approval_id = await unwatched(house, await house.conversation())
    (row,) = await questions(house)
    older, _ = await house.cortex.action_links.made(replace(row, actions=("approve", "deny")), "delivery-1")
    token = await house.cortex.accounts.login(house.admin.name, PASSWORD, "127.0.0.1", "Firefox")
    login = await house.cortex.accounts.who(token)
    assert login is not None
    assert not await house.cortex.action_links.press_at_once(login, older.path.removeprefix(PATH))
    assert [one.id for one in await house.cortex.approvals.pending(house.admin)] == [approval_id]


async def test_the_button_of_a_question_lets_the_call_go_on(house: LivingHouse) -> None:
    login, cid, approval_id, approve, deny = await light(house)
    assert await house.cortex.action_links.press(login, approve) == f"/c/{cid}"
    assert (await house.until(cid, "tool.result")).payload["state"] == "ok"
    with pytest.raises(Conflict):
        await house.cortex.action_links.press(login, deny)
    assert (await house.until(cid, "approval", state="allowed")).payload["approval"] == approval_id
