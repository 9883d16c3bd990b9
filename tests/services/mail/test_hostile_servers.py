"""Mail servers that answer as some were seen to: what they break is theirs alone, and nothing of it is lost."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cortex.base.errors import ServiceDown, ToolFailed, UserError
from cortex.base.user import User
from cortex.integrations.mail import client, imap, line
from cortex.integrations.mail.imap import Imap
from cortex.integrations.mail.server import MailServer
from cortex.ports.mail import MailHead, MailWanted
from cortex.services.mail import sync, watch
from cortex.services.mail.accounts import MailLogin
from cortex.storage.mail import MailAccountRow, MailAccountsRepository
from tests.hostile_imap import Hostile, Talk, head, heads, hostile
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

DRIPS_S = 0.2
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


@asynccontextmanager
async def house_of(tmp_path: Path, *servers: Hostile) -> AsyncIterator[LivingHouse]:
    places = tuple(f"127.0.0.1:{one.port}" for one in servers)
    async with living_house(tmp_path / "home", clock=StillClock(NOW), mail_servers=places) as house:
        yield house


async def added(house: LivingHouse, server: Hostile, user: User | None = None, name: str = "ann") -> str:
    given = MailLogin(
        address=f"{name}@example.org", host="127.0.0.1", port=server.port, security="none", username=name, password="x"
    )
    return await house.cortex.mail_accounts.add(user or house.admin, given)


async def asked(house: LivingHouse, account: str, user: User | None = None) -> MailAccountRow:
    """Have the server asked once; how the account stands then."""
    await house.cortex.mail_watch.tend((user or house.admin).id, account, waits=False)
    return await row(house, account, user)


async def row(house: LivingHouse, account: str, user: User | None = None) -> MailAccountRow:
    repository = house.cortex.runtime.db.repository(MailAccountsRepository, (user or house.admin).id)
    return await repository.account(account)


async def found(house: LivingHouse, user: User | None = None, **wanted: object) -> list[MailHead]:
    boxes = house.cortex.mailboxes_of((user or house.admin).id)
    given: dict[str, object] = {"most": 1_000, **wanted}
    return list((await boxes.search(MailWanted(**given))).heads)  # type: ignore[arg-type]


async def subjects(house: LivingHouse, user: User | None = None) -> set[str]:
    return {one.subject for one in await found(house, user)}


async def until(holds: Callable[[], object]) -> None:
    """Wait until this holds; what it gives may be awaited."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            said = holds()
            if await said if asyncio.iscoroutine(said) else said:
                return
            await asyncio.sleep(0.05)


def search_by_literal(talk: Talk, name: str, _: str) -> bool:
    if name == "SEARCH":
        talk.send("* SEARCH {3}", "1 2")
        return talk.done()
    return False


async def test_one_broken_server_ends_nobody_elses_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        hostile(otherwise=search_by_literal) as literal,
        hostile(uidvalidity="9" * 20) as endless,
        hostile(folders={"INBOX": {1: head("One")}}) as good,
    ):
        whole = Imap.examine

        def examine(self: Imap, path: str) -> object:
            if self._client.port == endless.port:
                raise RuntimeError("what nobody foresaw")
            return whole(self, path)

        monkeypatch.setattr(Imap, "examine", examine)
        async with house_of(tmp_path, literal, endless, good) as house:
            broken = [await added(house, one, name=f"n{one.port}") for one in (literal, endless)]
            account = await added(house, good, house.member)
            await until(lambda: subjects(house, house.member))
            good.folders["INBOX"][2] = head("Two")

            async def failed() -> bool:
                return bool((await row(house, broken[1])).failure)

            await until(failed)
            assert "form that cannot be read" in (await row(house, broken[1])).failure
            await house.cortex.mail_accounts.refresh(house.member, account)

            async def came() -> bool:
                return await subjects(house, house.member) == {"One", "Two"}

            await until(came)


async def test_a_count_that_no_column_holds_is_that_servers_failure(tmp_path: Path) -> None:
    with hostile(folders={"INBOX": heads(2)}, uidvalidity="9" * 20) as server:
        async with house_of(tmp_path, server) as house:
            await asked(house, await added(house, server))
            assert len(await found(house)) == 2


async def test_mails_that_cannot_be_listed_spoil_no_others(tmp_path: Path) -> None:
    """Gmail and Yahoo refuse a whole FETCH for one broken mail; others name ten thousand people in each."""

    def refusing(talk: Talk, name: str, more: str) -> bool:
        return name == "FETCH" and 13 in talk.asked(more) and "BODY" in more and talk.done("NO [SERVERBUG] broken")

    people = b", ".join(b"p%d@example.org" % number for number in range(30_000))
    mails = {uid: b"To: " + people + b"\r\n" + head(f"Mail {uid}") for uid in range(1, 41)}
    deep = {uid: b"To: " + b"@" * 300_000 + b"\r\n" + head(f"Mail {uid}") for uid in range(41, 61)}
    with hostile(folders={"INBOX": {**mails, **deep}}, otherwise=refusing) as server:
        async with house_of(tmp_path, server) as house:
            account = await asked(house, await added(house, server))
            assert account.failure == ""
            assert len(await found(house)) == 60


async def test_a_folder_that_fails_holds_up_no_other_and_is_told(tmp_path: Path) -> None:
    def throttled(talk: Talk, name: str, more: str) -> bool:
        return name == "EXAMINE" and "Bills" in more and talk.done("NO [INUSE] Mailbox is busy")

    folders = {"INBOX": heads(1), "Bills": heads(1), "Choir": {1: head("Sing")}}
    with hostile(folders=folders, otherwise=throttled) as server:
        async with house_of(tmp_path, server) as house:
            account = await asked(house, await added(house, server))
            assert await subjects(house) == {"Mail 1", "Sing"}
            assert "Bills" in account.failure
            assert "Mailbox is busy" in account.failure
            server.otherwise = lambda *_: False
            del server.folders["Choir"]  # and one that is gone is no failure
            assert (await asked(house, account.id)).failure == ""


async def test_what_is_done_is_told_though_the_index_cannot_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(talk: Talk, name: str, _: str) -> bool:
        is_done = bool(talk.server.commands("STORE"))
        return is_done and name in ("SEARCH", "EXAMINE") and talk.done("NO [UNAVAILABLE] not now")

    with hostile(folders={"INBOX": heads(1)}, otherwise=refusing) as server:
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)
            await asked(house, account)
            boxes = house.cortex.mailboxes_of(house.admin.id)
            change = await boxes.ready_marks([(await found(house))[0].id], ["flagged"], [])
            assert await boxes.write(change)
            assert len(server.commands("STORE")) == 1
            server.otherwise = lambda *_: False
            monkeypatch.setattr(sync, "LOOK_S", 0.2)
            lock = house.cortex.mail_sync._reading.setdefault(change.places[0].folder_id, asyncio.Lock())
            async with lock:  # somebody reads the whole folder for hours
                assert await boxes.write(change)


async def test_a_greeting_without_end_holds_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "OPEN_S", 1.0)
    stopped = threading.Event()

    def drip(talk: Talk) -> None:
        while not stopped.wait(DRIPS_S):
            talk.line.sendall(b" OK")

    monkeypatch.setattr(Talk, "serve", drip)
    with hostile() as server:
        at = MailServer(
            host="127.0.0.1", port=server.port, security="none", username="ann", password="x", is_inside=True
        )
        with pytest.raises(ServiceDown):
            await client.MailDoor().open(at)
        await until(lambda: not [one for one in threading.enumerate() if one.name.startswith("mail_")])
        stopped.set()


async def test_a_person_tries_few_servers_at_once(tmp_path: Path) -> None:
    held = threading.Event()

    def waits(_: Talk, name: str, __: str) -> bool:
        return name == "LOGIN" and not held.wait(PATIENCE_S)

    with hostile(otherwise=waits) as server:
        async with house_of(tmp_path, server) as house:
            tries = [asyncio.ensure_future(added(house, server, name=f"n{n}")) for n in range(3)]
            done, left = await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_S)
            (refused,) = done
            with pytest.raises(Exception, match="being tried"):
                refused.result()
            held.set()
            await asyncio.gather(*left)


async def test_what_is_said_unasked_takes_no_mail_away(tmp_path: Path) -> None:
    """Gmail, Dovecot and Proton's bridge say behind an answer, or ahead of it, what was read elsewhere just now."""

    def seen(talk: Talk, name: str, more: str) -> bool:
        if name != "FETCH":
            return False
        talk.send("* 1 FETCH (UID 1 FLAGS (\\Seen))")
        for uid in talk.asked(more):
            talk.mail(uid, more)
        talk.send("* 1 FETCH (UID 1 FLAGS (\\Seen))")
        return talk.done()

    with hostile(folders={"INBOX": {1: head("Trip") + b"On Friday.\r\n"}}, otherwise=seen) as server:
        async with house_of(tmp_path, server) as house:
            await asked(house, await added(house, server))
            (one,) = await found(house)
            assert one.subject == "Trip"
            assert "On Friday." in (await house.cortex.mailboxes_of(house.admin.id).read(one.id)).text


async def test_who_is_removed_or_shut_out_is_watched_no_more(tmp_path: Path) -> None:
    with hostile(folders={"INBOX": heads(1)}) as server:
        server.otherwise = lambda talk, name, _: name == "DONE"  # and it answers nothing any more
        async with house_of(tmp_path, server) as house:
            mine, bens = await added(house, server), await added(house, server, house.member)

            def waiting() -> bool:
                return len(server.commands("IDLE")) == 2

            await until(waiting)
            await house.cortex.mail_accounts.remove(house.admin, mine)
            await until(lambda: sum(not one.ended.is_set() for one in server.talks) == 1)
            await house.cortex.accounts.set_active(house.member.name, False)
            house.cortex.mail_watch.wake()
            await until(lambda: all(one.ended.is_set() for one in server.talks))
            assert (await row(house, bens, house.member)).failure == ""
            assert "DONE" not in " ".join(server.said)


async def test_words_of_any_script_are_looked_for_or_named(tmp_path: Path) -> None:
    """Outlook takes US-ASCII alone."""

    def outlook(talk: Talk, name: str, more: str) -> bool:
        if name == "SEARCH" and "CHARSET" in more:
            return talk.done("NO [BADCHARSET (US-ASCII)] The specified charset is not supported.")
        if name == "SEARCH" and "TEXT" in more:
            talk.send("* SEARCH 1", "* SEARCH 2")
            return talk.done()
        return False

    with hostile(folders={"INBOX": heads(3)}, otherwise=outlook) as server:
        async with house_of(tmp_path, server) as house:
            await asked(house, await added(house, server))
            boxes = house.cortex.mailboxes_of(house.admin.id)
            said = await boxes.search(MailWanted(words="gasket größe", in_text=True))
            assert len(said.heads) == 2
            assert "cannot look for größe" in said.note
            said = await boxes.search(MailWanted(words="größe", in_text=True))
            assert said.count == 0
            assert "cannot look for größe" in said.note


def idles(talk: Talk, *lines: str) -> bool:
    """Answer IDLE by these lines in one piece, then wait for its end."""
    talk.send(*lines)
    if talk.file.readline():
        talk.done()
    return True


async def test_a_line_that_ends_while_it_waits_is_no_failure(tmp_path: Path) -> None:
    def ends(talk: Talk, name: str, _: str) -> bool:
        if name != "IDLE":
            return False
        talk.send("+ idling")
        raise OSError

    with hostile(folders={"INBOX": heads(1)}, otherwise=ends) as server:
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)
            await until(lambda: server.commands("IDLE"))

            async def soon() -> bool:
                return (await row(house, account)).next_at == NOW + timedelta(minutes=1)

            await until(soon)
            assert (await row(house, account)).failure == ""


async def test_news_in_one_piece_with_the_yes_are_heard(tmp_path: Path) -> None:
    def at_once(talk: Talk, name: str, _: str) -> bool:
        if name != "IDLE":
            return False
        if len(talk.server.commands("IDLE")) > 1:
            return idles(talk, "+ idling")
        talk.server.folders["INBOX"][2] = head("Two")
        return idles(talk, "* OK still here", "+ idling", "* 2 EXISTS")

    with hostile(folders={"INBOX": heads(1), "Choir": heads(1)}, otherwise=at_once) as server:
        async with house_of(tmp_path, server) as house:
            await added(house, server)
            await until(lambda: len(server.commands("IDLE")) == 2)
            assert "Two" in await subjects(house)
            # News of the inbox look at the inbox alone.
            assert len(server.commands("LIST")) == 2
            assert len([one for one in server.commands("EXAMINE") if "Choir" in one]) == 1


async def test_a_server_that_refuses_to_tell_is_asked_from_time_to_time(tmp_path: Path) -> None:
    def refuses(talk: Talk, name: str, _: str) -> bool:
        return name == "IDLE" and talk.done("NO not now")

    with hostile(folders={"INBOX": heads(1)}, otherwise=refuses) as server:
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)

            async def polled() -> bool:
                return (await row(house, account)).next_at == NOW + timedelta(minutes=5)

            await until(polled)
            assert (await row(house, account)).failure == ""


async def test_a_server_that_repeats_itself_is_not_asked_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PAUSE_S", 3_600.0)  # twice it is heard at once: the first, and the one behind its pause

    def repeats(talk: Talk, name: str, _: str) -> bool:
        return name == "IDLE" and idles(talk, "+ idling", "* 1 EXISTS")

    with hostile(folders={"INBOX": heads(1)}, otherwise=repeats) as server:
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)
            await until(lambda: len(server.commands("IDLE")) == 2)
            for _ in range(5):
                await asked(house, account)
            assert len(server.commands("IDLE")) == 2


async def test_who_reads_for_long_is_not_begun_anew(tmp_path: Path) -> None:
    held, begun = threading.Event(), threading.Event()

    def slow(_: Talk, name: str, __: str) -> bool:
        if name == "FETCH":
            begun.set()
            held.wait(PATIENCE_S)
        return False

    with hostile(folders={"INBOX": heads(3)}, otherwise=slow) as server:
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)
            await until(begun.is_set)
            clock = house.cortex.runtime.clock
            assert isinstance(clock, StillClock)
            clock.at = NOW + timedelta(minutes=11)
            house.cortex.mail_watch.wake()

            async def taken() -> bool:
                return (await row(house, account)).next_at > clock.at

            await until(taken)
            held.set()
            await until(lambda: subjects(house))
            assert server.logins == 2  # the try, and the reading


async def test_a_folder_that_is_switched_off_while_it_is_read_leaves_nothing(tmp_path: Path) -> None:
    held, begun = threading.Event(), threading.Event()

    def slow(_: Talk, name: str, __: str) -> bool:
        if name == "FETCH":
            begun.set()
            held.wait(PATIENCE_S)
        return False

    with hostile(folders={"INBOX": heads(1), "Choir": heads(3)}, otherwise=slow) as server:
        held.set()
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)
            await until(lambda: subjects(house))
            boxes = house.cortex.mailboxes_of(house.admin.id)
            ((first,),) = [[one for one in (await boxes.accounts())[0].folders if one.role == "inbox"]]
            await until(lambda: server.commands("IDLE"))
            held.clear()
            begun.clear()
            server.folders["Choir"].update({uid: head(f"Late {uid}") for uid in range(10, 13)})
            await house.cortex.mail_accounts.refresh(house.admin, account)
            await until(begun.is_set)
            await house.cortex.mail_accounts.set_folders(house.admin, account, [first.id])
            held.set()
            await asked(house, account)
            assert await subjects(house) == {"Mail 1"}
            choir = next(one.id for one in (await boxes.accounts())[0].folders if one.name == "Choir")
            said = await boxes.search(MailWanted(folder_id=choir))
            assert said.count == 0
            assert "Choir: not read" in said.note


async def test_ones_slow_servers_hold_up_nobody_else(tmp_path: Path) -> None:
    held = threading.Event()

    def slow(_: Talk, name: str, __: str) -> bool:
        return name == "EXAMINE" and not held.wait(PATIENCE_S)

    with hostile(otherwise=slow) as server, hostile(folders={"INBOX": heads(1)}) as good:
        async with house_of(tmp_path, server, good) as house:
            for number in range(client.AT_ONCE):
                await added(house, server, name=f"n{number}")
            await until(lambda: server.commands("EXAMINE"))
            await added(house, good, house.member)
            await until(lambda: subjects(house, house.member))
            held.set()


async def test_lines_cost_more_than_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "ANSWER_BYTES", 2_000_000)

    def many(talk: Talk, name: str, _: str) -> bool:
        if name == "LIST":
            talk.send(*(f"* X{number}" for number in range(20_000)))
        return False

    with hostile(otherwise=many) as server:
        async with house_of(tmp_path, server) as house:
            with pytest.raises(ServiceDown, match="more than is read"):
                await added(house, server)


async def test_commands_are_short_and_shorter_where_they_failed(tmp_path: Path) -> None:
    """Outlook takes no long lines, and slow servers no many mails."""

    def closes(talk: Talk, name: str, more: str) -> bool:
        if name == "FETCH" and len(talk.asked(more)) > 60:
            raise OSError
        return False

    mails = {uid * 3: head(f"Mail {uid}") for uid in range(1, 451)}
    with hostile(folders={"INBOX": mails}, otherwise=closes) as server:
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)
            for _ in range(4):
                standing = await asked(house, account)
            assert standing.failure == ""
            assert len(await found(house)) == 450
            assert max(len(one) for one in server.commands("FETCH")) < 2_000


async def test_more_mails_than_one_person_may_have_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "OWN_MOST", 10)
    monkeypatch.setattr("cortex.services.mail.mailboxes.OWN_MOST", 10)
    with hostile(folders={"INBOX": heads(15)}) as server:
        async with house_of(tmp_path, server) as house:
            account = await added(house, server)
            await asked(house, account)
            assert "Mail 15" in await subjects(house)
            assert len(await found(house)) == 10
            server.folders["INBOX"][16] = head("News")
            await asked(house, account)
            await asked(house, account)
            assert "News" in await subjects(house)
            assert len(await found(house)) == 10
            said = await house.cortex.mailboxes_of(house.admin.id).search(MailWanted())
            assert "newest 10 mails" in said.note


async def test_refusals_are_told_in_the_servers_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile() as server:
        async with house_of(tmp_path, server) as house:
            server.greeting = b"* BYE Too many connections\r\n"
            with pytest.raises(ToolFailed, match=r"refused: BYE Too many connections$"):
                await added(house, server)
            server.greeting = b"* OK ready\r\n"
            server.otherwise = lambda talk, name, _: name == "LIST" and talk.done("NO LIST is off")
            with pytest.raises(ToolFailed, match="LIST is off"):
                await added(house, server)

            def bye(talk: Talk, name: str, _: str) -> bool:
                if name == "LIST":
                    talk.send("* BYE Too many connections from your address")
                return False

            server.otherwise = bye
            with pytest.raises(ServiceDown, match="broke off: Too many connections from your address"):
                await added(house, server)
            server.otherwise = lambda talk, name, _: name == "LOGIN" and talk.done("NO wrong")
            with pytest.raises(UserError, match=r"does not take this login \(wrong\)"):
                await added(house, server)
            monkeypatch.setattr(line, "LINE_BYTES", 10_000)

            def long(talk: Talk, name: str, _: str) -> bool:
                if name == "LIST":
                    talk.send("* " + "x" * 20_000)
                return False

            server.otherwise = long
            with pytest.raises(ServiceDown, match="more than is read"):
                await added(house, server)
