"""Mail over real servers: connected, read without a trace, found, changed once, and shut to everybody else."""

import imaplib
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotAllowed, NotFound, ServiceDown, ToolFailed, UserError
from cortex.base.user import User
from cortex.integrations.mail.imap import Imap
from cortex.ports.mail import MailDraft, MailHead, MailPerson, MailWanted
from cortex.services.mail.accounts import MailLogin
from cortex.storage.mail import MailAccountsRepository
from tests.imap_servers import PASSWORD, ImapServer, dovecot, mail, pymap
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
BEN = MailPerson(address="ben@example.org", name="Ben")


@pytest.fixture(params=["dovecot", "pymap"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ImapServer]:
    with dovecot() if request.param == "dovecot" else pymap(tmp_path / "pymap") as running:
        yield running


@pytest.fixture
def real(tmp_path: Path) -> Iterator[ImapServer]:
    with dovecot() as running:
        yield running


async def opened(server: ImapServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    place = (f"127.0.0.1:{server.port}",)
    async with living_house(tmp_path / "home", clock=StillClock(NOW), mail_servers=place) as house:
        yield house


@pytest.fixture
async def house(server: ImapServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async for one in opened(server, tmp_path):
        yield one


@pytest.fixture
async def real_house(real: ImapServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async for one in opened(real, tmp_path):
        yield one


async def connected(house: LivingHouse, server: ImapServer, user: User | None = None, name: str = "ann") -> str:
    """The person's account, with its index made."""
    owner = user or house.admin
    id = await house.cortex.mail_accounts.add(
        owner,
        MailLogin(
            address=f"{name}@example.org",
            host="127.0.0.1",
            port=server.port,
            security="none",
            username=name,
            password=PASSWORD,
        ),
    )
    await synced(house, id, owner)
    return id


async def synced(house: LivingHouse, id: str, user: User | None = None) -> None:
    owner = (user or house.admin).id
    await house.cortex.mail_watch.tend(owner, id, waits=False)
    assert (await house.cortex.runtime.db.repository(MailAccountsRepository, owner).account(id)).failure == ""


async def found(house: LivingHouse, user: User | None = None, **wanted: object) -> list[MailHead]:
    boxes = house.cortex.mailboxes_of((user or house.admin).id)
    return list((await boxes.search(MailWanted(**wanted))).heads)  # type: ignore[arg-type]


async def folder(house: LivingHouse, name: str) -> str:
    accounts = await house.cortex.mailboxes_of(house.admin.id).accounts()
    return next(one.id for one in accounts[0].folders if one.name == name)


async def test_what_came_is_found_by_words_people_and_marks(house: LivingHouse, server: ImapServer) -> None:
    server.deliver(mail("Class trip", "On Friday.", sender="The School <office@school.example>"))
    server.deliver(mail("=?utf-8?q?B=C3=BCcher_zur=C3=BCck?=", "Bitte.", sender="Mia <mia@example.org>"))
    await connected(house, server)
    assert {one.subject for one in await found(house)} >= {"Class trip", "Bücher zurück"}
    assert [one.subject for one in await found(house, words="BÜCHER")] == ["Bücher zurück"]
    assert [one.subject for one in await found(house, sender="school")] == ["Class trip"]
    assert [one.subject for one in await found(house, subject="mia")] == []
    assert [one.sender for one in await found(house, sender="mia")] == [
        MailPerson(address="mia@example.org", name="Mia")
    ]
    assert "Class trip" in [one.subject for one in await found(house, is_seen=False)]


async def test_words_of_the_text_are_found_by_the_server(house: LivingHouse, server: ImapServer) -> None:
    server.deliver(mail("One", "The gasket is of rubber."))
    server.deliver(mail("Two", "Nothing of it."))
    account = await connected(house, server)
    assert await found(house, words="gasket") == []
    assert [one.subject for one in await found(house, words="gasket rubber", in_text=True)] == ["One"]
    server.deliver(mail("Three", "Die Größe der 日本 Dichtung, gasket."))
    await synced(house, account)
    assert [one.subject for one in await found(house, words="größe gasket 日本", in_text=True)] == ["Three"]


async def test_looking_marks_nothing_as_read(house: LivingHouse, server: ImapServer) -> None:
    server.deliver(mail("Look", "Some words.", id="look"))
    await connected(house, server)
    head = (await found(house, subject="Look"))[0]
    text = await house.cortex.mailboxes_of(house.admin.id).read(head.id)
    assert "Some words." in text.text
    assert text.message_id == "<look@example.org>"
    await house.cortex.mailboxes_of(house.admin.id).reply(head.id)
    flags = [flags for one, flags in server.flagged() if one["Subject"] == "Look"]
    assert flags == [frozenset()]


async def test_what_changes_on_the_server_changes_here(house: LivingHouse, server: ImapServer) -> None:
    server.deliver(mail("Stays"))
    server.deliver(mail("Goes"))
    account = await connected(house, server)
    with server.login() as client:
        client.select("INBOX")
        goes = client.uid("SEARCH", 'SUBJECT "Goes"')[1][0].decode()
        stays = client.uid("SEARCH", 'SUBJECT "Stays"')[1][0].decode()
        client.uid("STORE", stays, "+FLAGS", "(\\Seen \\Flagged)")
        client.uid("STORE", goes, "+FLAGS", "(\\Deleted)")
        client.expunge()
    server.deliver(mail("Comes"))
    await synced(house, account)
    assert await found(house, subject="Goes") == []
    assert [one.subject for one in await found(house, is_flagged=True, is_seen=True, subject="Stays")] == ["Stays"]
    assert [one.subject for one in await found(house, subject="Comes")] == ["Comes"]


async def test_a_conversation_is_one_whatever_order_it_comes_in(house: LivingHouse, server: ImapServer) -> None:
    server.deliver(mail("Re: Plan", "C", "In-Reply-To: <b@example.org>", id="c"))
    account = await connected(house, server)
    server.deliver(mail("Plan", "A", id="a"))
    await synced(house, account)
    server.deliver(mail("Re: Plan", "B", "In-Reply-To: <a@example.org>", id="b"))
    server.deliver(mail("Re: Plan", "D", "References: <a@example.org> <b@example.org> <c@example.org>", id="d"))
    server.deliver(mail("Plan", "Another one.", id="e"))
    await synced(house, account)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    one = next(head for head in await found(house, words="Plan") if head.subject == "Re: Plan")
    assert len(await boxes.thread(one.id)) == 4


async def test_an_answer_is_laid_among_the_drafts_once(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.deliver(mail("Trip", "Do you come?", "Cc: Mia <mia@example.org>", id="trip"))
    await connected(house, server)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    head = (await found(house, subject="Trip"))[0]
    draft = MailDraft(text="Gladly, schönen Gruß.", answers=head.id, to_all=True)
    change = await boxes.ready_draft("call-1", draft)
    assert (await boxes.ready_draft("call-1", draft)).message_id == change.message_id
    done = await boxes.write(change)
    assert await boxes.write(change) == done
    laid = server.flagged("Drafts")
    assert len(laid) == 1
    made, flags = laid[0]
    assert (made["Subject"], made["In-Reply-To"], made["References"]) == (
        "Re: Trip",
        "<trip@example.org>",
        "<trip@example.org>",
    )
    assert (made["From"], made["To"]) == ("ann@example.org", "Ben <ben@example.org>, Mia <mia@example.org>")
    assert "schönen Gruß" in made.get_payload(decode=True).decode()  # type: ignore[union-attr]
    assert "\\Draft" in flags
    undone = await boxes.put_back(change, done)
    assert server.mails("Drafts") == []
    await boxes.put_back(change, undone)
    assert len(server.mails("Drafts")) == 1


async def test_a_mail_is_moved_once_and_comes_back(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.make("B&APw-ro")
    server.deliver(mail("Bill", id="bill"))
    server.deliver(mail("Other", id="other"))
    await connected(house, server)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    head = (await found(house, subject="Bill"))[0]
    change = await boxes.ready_move([head.id], await folder(house, "Büro"))
    done = await boxes.write(change)
    assert [one["Subject"] for one in server.mails("B&APw-ro")] == ["Bill"]
    assert await boxes.write(change) == done
    assert [one["Subject"] for one in server.mails()] == ["Other"]
    assert [one.folder.name for one in await found(house, subject="Bill")] == ["Büro"]
    undone = await boxes.put_back(change, done)
    assert sorted(one["Subject"] for one in server.mails()) == ["Bill", "Other"]
    again = await boxes.put_back(change, undone)
    assert [one["Subject"] for one in server.mails("B&APw-ro")] == ["Bill"]
    with server.login() as client:
        client.select("B&APw-ro")
        client.store("1", "+FLAGS", "(\\Deleted)")
        client.expunge()
    with pytest.raises((Conflict, NotFound)):
        await boxes.put_back(change, again)


async def test_moving_takes_away_nobody_elses_deleted_mails(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.deliver(mail("Marked to go", id="x"))
    server.deliver(mail("Bill", id="bill"))
    await connected(house, server)
    with server.login() as client:
        client.select("INBOX")
        client.store("1", "+FLAGS", "(\\Deleted)")
    boxes = house.cortex.mailboxes_of(house.admin.id)
    head = (await found(house, subject="Bill"))[0]
    await boxes.write(await boxes.ready_move([head.id], await folder(house, "Archive")))
    await boxes.write(await boxes.ready_marks([(await found(house, subject="go"))[0].id], ["flagged"], []))
    assert [one["Subject"] for one in server.mails()] == ["Marked to go"]


async def test_marks_are_set_and_taken_back_as_they_were(house: LivingHouse, server: ImapServer) -> None:
    server.deliver(mail("Read", id="r"), flags="(\\Seen)")
    server.deliver(mail("Unread", id="u"))
    await connected(house, server)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    ids = [one.id for one in await found(house) if one.subject in ("Read", "Unread")]
    change = await boxes.ready_marks(ids, ["seen", "flagged"], [])
    done = await boxes.write(change)
    shown = {one["Subject"]: flags for one, flags in server.flagged() if one["Subject"] in ("Read", "Unread")}
    assert all({"\\Seen", "\\Flagged"} <= flags for flags in shown.values())
    assert {one.subject for one in await found(house, is_flagged=True)} >= {"Read", "Unread"}
    await boxes.put_back(change, done)
    shown = {one["Subject"]: flags for one, flags in server.flagged() if one["Subject"] in ("Read", "Unread")}
    assert shown == {"Read": frozenset({"\\Seen"}), "Unread": frozenset()}


async def test_what_was_read_elsewhere_meanwhile_stays_read(house: LivingHouse, server: ImapServer) -> None:
    server.deliver(mail("Bill", id="bill"))
    await connected(house, server)
    (id,) = [one.id for one in await found(house, subject="Bill")]
    with server.login() as client:  # on the phone, and nobody told us yet
        client.select("INBOX")
        client.uid("STORE", client.uid("SEARCH", 'SUBJECT "Bill"')[1][0].decode(), "+FLAGS", "(\\Seen)")
    boxes = house.cortex.mailboxes_of(house.admin.id)
    change = await boxes.ready_marks([id], ["seen", "flagged"], [])
    await boxes.put_back(change, await boxes.write(change))
    assert {flags for one, flags in server.flagged() if one["Subject"] == "Bill"} == {frozenset({"\\Seen"})}


async def test_a_kill_between_copy_and_removal_doubles_no_mail(
    real_house: LivingHouse, real: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with UIDPLUS alone: moving is two acts."""
    house, server = real_house, real
    server.deliver(mail("Bill", id="bill"))
    server.deliver(mail("No id", "Hello.", "Message-ID:", id="x"))
    server.deliver(mail("Bill, forged", "Another.", id="bill"), folder="Archive")
    await connected(house, server)
    monkeypatch.setattr(Imap, "can_move", False)
    discard = Imap.discard
    boxes = house.cortex.mailboxes_of(house.admin.id)
    archive = await folder(house, "Archive")
    change = await boxes.ready_move([one.id for one in await found(house) if one.subject == "Bill"], archive)

    def killed(self: Imap, uids: Sequence[int]) -> None:
        raise ServiceDown("killed")

    monkeypatch.setattr(Imap, "discard", killed)
    for _ in range(2):
        with pytest.raises(ServiceDown, match="killed"):
            await boxes.write(change)
    monkeypatch.setattr(Imap, "discard", discard)
    done = await boxes.write(change)
    assert sorted(one["Subject"] for one in server.mails("Archive")) == ["Bill", "Bill, forged"]
    assert [one["Subject"] for one in server.mails()] == ["No id"]
    await boxes.put_back(change, done)
    assert [one["Subject"] for one in server.mails("Archive")] == ["Bill, forged"]
    (unnamed,) = [one.id for one in await found(house) if one.subject == "No id"]
    with pytest.raises(ToolFailed, match="bears no id"):
        await boxes.write(await boxes.ready_move([unnamed], archive))


async def test_of_many_mails_with_the_words_the_newest_are_shown(
    real_house: LivingHouse, real: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, server = real_house, real
    for number, name in enumerate(("Archive", "INBOX", "Archive")):
        with server.login() as client:
            at = imaplib.Time2Internaldate(NOW - timedelta(days=9 - number))
            client.append(name, "", at, mail(f"M{number}", "gasket").replace("\n", "\r\n").encode())
    await connected(house, server)
    monkeypatch.setattr("cortex.services.mail.mailboxes.FOUND_MOST", 2)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    said = await boxes.search(MailWanted(words="gasket", in_text=True))
    assert [one.subject for one in said.heads] == ["M2", "M1"]
    assert "the newest 2 of 3" in said.note
    monkeypatch.setattr("cortex.services.mail.mailboxes.LOOKED_S", 0.0)
    said = await boxes.search(MailWanted(words="gasket", in_text=True))
    assert "no time to look through" in said.note


async def test_several_mails_are_read_by_one_login(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    for name in ("One", "Two", "Three"):
        server.deliver(mail(name, f"Text of {name}."))
    await connected(house, server)
    ids = {one.subject: one.id for one in await found(house)}
    with server.login() as client:  # one of them goes just now
        client.select("INBOX")
        client.uid("STORE", client.uid("SEARCH", 'SUBJECT "Two"')[1][0].decode(), "+FLAGS", "(\\Deleted)")
        client.expunge()
    logins = (server.folder / "log").read_text().count("Login: user=<ann>")
    texts = await house.cortex.mailboxes_of(house.admin.id).read_all(list(ids.values()))
    assert {id: one.text.strip() for id, one in texts.items()} == {
        ids["One"]: "Text of One.", ids["Three"]: "Text of Three.",
    }  # fmt: skip
    assert (server.folder / "log").read_text().count("Login: user=<ann>") == logins + 1


async def test_attachments_are_listed_and_fetched_by_number(house: LivingHouse, server: ImapServer) -> None:
    body = (
        "--b\nContent-Type: text/plain\n\nSee the list.\n--b\nContent-Type: application/octet-stream\n"
        'Content-Disposition: attachment; filename="list.bin"\nContent-Transfer-Encoding: base64\n\n'
        "AAECAwQ=\n--b--\n"
    )
    server.deliver(mail("List", body, "Content-Type: multipart/mixed; boundary=b"))
    await connected(house, server)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    head = (await found(house, subject="List", has_files=True))[0]
    text = await boxes.read(head.id)
    assert "See the list." in text.text
    assert [(one.number, one.name, one.size) for one in text.files] == [(1, "list.bin", 5)]
    assert await boxes.file(head.id, 1) == bytes(range(5))
    with pytest.raises(ToolFailed, match="no attachment 2"):
        await boxes.file(head.id, 2)


async def test_another_persons_mail_stays_shut(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.deliver(mail("Private", id="p"))
    account = await connected(house, server)
    mine = (await found(house, subject="Private"))[0]
    ben = house.member
    boxes = house.cortex.mailboxes_of(ben.id)
    assert await boxes.accounts() == []
    assert (await boxes.search(MailWanted())).count == 0
    for work in (boxes.read(mine.id), boxes.head(mine.id), boxes.thread(mine.id), boxes.file(mine.id, 1)):
        with pytest.raises(NotFound):
            await work
    with pytest.raises(NotFound):
        await boxes.ready_move([mine.id], mine.folder.id)
    with pytest.raises(NotFound):
        await boxes.write(await house.cortex.mailboxes_of(house.admin.id).ready_marks([mine.id], ["seen"], []))
    with pytest.raises(NotFound):
        await house.cortex.mail_accounts.remove(ben, account)


async def test_what_is_no_login_is_refused_in_words(house: LivingHouse, server: ImapServer) -> None:
    given = MailLogin(
        address="ann@example.org", host="127.0.0.1", port=server.port, security="none", username="ann", password="wrong"
    )
    accounts = house.cortex.mail_accounts
    with pytest.raises(UserError, match="does not take"):
        await accounts.add(house.admin, given)
    with pytest.raises(UserError, match="Enter the password"):
        await accounts.add(house.admin, replace(given, password="a\r\nLOGOUT"))
    with pytest.raises(ServiceDown):
        await accounts.add(house.admin, replace(given, security="tls", password=PASSWORD))
    with pytest.raises(UserError, match="readably"):
        await accounts.add(house.admin, replace(given, port=144, password=PASSWORD))
    with pytest.raises((UserError, NotAllowed)):
        await accounts.add(house.admin, replace(given, port=144, security="tls", password=PASSWORD))
    assert await accounts.list(house.admin) == []


async def test_folders_that_are_not_read_leave_nothing_here(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.deliver(mail("In", id="in"))
    server.deliver(mail("Filed", id="filed"), folder="Archive")
    account = await connected(house, server)
    assert len(await found(house)) == 2
    await house.cortex.mail_accounts.set_folders(house.admin, account, [await folder(house, "Archive")])
    await synced(house, account)
    assert [one.subject for one in await found(house)] == ["Filed"]


async def test_a_folder_that_is_counted_anew_is_read_again(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.deliver(mail("Kept", id="kept"))
    account = await connected(house, server)
    before = (await found(house, subject="Kept"))[0]
    for name in ("dovecot-uidlist", "dovecot.index", "dovecot.index.log", "dovecot.index.cache"):
        (server.folder / "mail" / "ann" / name).unlink(missing_ok=True)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    with pytest.raises((Conflict, NotFound)):
        await boxes.write(await boxes.ready_marks([before.id], ["flagged"], []))
    await synced(house, account)
    after = (await found(house, subject="Kept"))[0]
    assert after.id != before.id
    assert (await boxes.read(after.id)).head.subject == "Kept"


async def test_ten_thousand_mails_are_found_at_once(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.fill(10_000)
    await connected(house, server)
    boxes = house.cortex.mailboxes_of(house.admin.id)
    result = await boxes.search(MailWanted(words="school 7777"))
    assert [one.subject for one in result.heads] == ["Note 7777 of the school"]
    result = await boxes.search(MailWanted(words="garden", sender="mia"))
    assert result.count > 500
    later = await boxes.search(MailWanted(words="garden", sender="mia", before=result.heads[-1].id))
    assert later.heads[0].at <= result.heads[-1].at
    assert not {one.id for one in later.heads} & {one.id for one in result.heads}


async def test_an_account_that_goes_takes_everything_with_it(real_house: LivingHouse, real: ImapServer) -> None:
    house, server = real_house, real
    server.deliver(mail("Gone", id="gone"))
    account = await connected(house, server)
    assert (await house.cortex.mail_accounts.list(house.admin))[0][0].id == account
    await house.cortex.mail_accounts.remove(house.admin, account)
    assert await found(house) == []
    assert len(server.mails()) == 1
