"""The audit log against somebody who has the database, or the files, and not the secret key."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import select, text, update

from cortex.app import Cortex
from cortex.base.background import background_tasks
from cortex.base.clock import now
from cortex.base.errors import UserError
from cortex.storage.audit import AuditRepository, AuditRow
from cortex.storage.audit_head import BEGINNING, FILE
from cortex.storage.notices import NoticesRepository
from cortex.storage.schema import AuditTable
from tests.children import environment, run
from tests.databases import house_settings
from tests.e2e.caller import PASSWORD
from tests.living_house import living_house

ROWS = 6
CUT = "DELETE FROM audit WHERE number > :last"


@dataclass(frozen=True, slots=True)
class Kept:
    cortex: Cortex
    home: Path

    @property
    def log(self) -> AuditRepository:
        return self.cortex.runtime.db.repository(AuditRepository)

    async def behind_the_guard(self, statement: str, **values: object) -> None:
        """What somebody with the database's own rights can do."""
        async with self.cortex.runtime.db.session_scope() as session:
            if self.cortex.runtime.db.is_postgresql:
                await session.execute(text("ALTER TABLE audit DISABLE TRIGGER ALL"))
            else:
                for change in ("update", "delete"):
                    await session.execute(text(f"DROP TRIGGER IF EXISTS audit_no_{change}"))
            await session.execute(text(statement), values)


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    home = tmp_path / "home"
    async with Cortex.at_rest(house_settings(home)) as cortex:
        await cortex.accounts.add_user("Ada", "admin", PASSWORD)
        for number in range(ROWS - 1):
            await cortex.runtime.db.repository(AuditRepository).add("", "test.row", f"row {number}")
        yield Kept(cortex, home)


def verify(kept: Kept, *more: str) -> tuple[int, str]:
    """What the command says, and its exit code."""
    ended = run(["audit", "verify", *more], env=environment(kept.home), cwd=kept.home)
    return ended.returncode, ended.stdout + ended.stderr


async def rewritten_without_the_key(kept: Kept, number: int) -> None:
    """Change a row and make the chain fit again, as anybody can who knows how it is made."""
    await kept.behind_the_guard("UPDATE audit SET subject = 'nothing to see' WHERE number = :number", number=number)
    await hashed_anew_from(kept, number)


async def hashed_anew_from(kept: Kept, number: int) -> None:
    """Have the chain fit again from this row on, without the key."""
    async with kept.cortex.runtime.db.session_scope() as session:
        names = list(AuditRow.__struct_fields__)
        statement = select(*(getattr(AuditTable, name) for name in names)).order_by(AuditTable.number)
        rows = [AuditRow(**row) for row in (await session.execute(statement)).mappings()]
        previous = rows[number - 2].hash if number > 1 else BEGINNING.hash
        for row in rows[number - 1 :]:
            said = [previous, row.number, row.at.isoformat(), row.actor, row.action, row.subject, row.detail]
            fresh = hashlib.sha256(json.dumps(said).encode()).hexdigest()
            change = update(AuditTable).where(AuditTable.number == row.number)
            await session.execute(change.values(previous_hash=previous, hash=fresh))
            previous = fresh


async def test_a_log_that_nobody_touched_is_whole(kept: Kept) -> None:
    verdict = await kept.cortex.audit_log.verify()
    assert (verdict.entries, verdict.problem) == (ROWS, "")
    code, said = await asyncio.to_thread(verify, kept, "--head", verdict.head)
    assert (code, f"ok {ROWS} rows" in " ".join(said.split()), verdict.head in said) == (0, True, True)


async def test_a_rewritten_chain_does_not_fit_without_the_key(kept: Kept) -> None:
    await rewritten_without_the_key(kept, 4)
    code, said = await asyncio.to_thread(verify, kept)
    assert (code, said.split()[:3]) == (1, ["BAD", "row", "4:"])


async def test_a_cut_tail_is_seen_and_stays_seen_when_more_is_written(kept: Kept) -> None:
    await kept.behind_the_guard(CUT, last=ROWS - 2)
    found = await kept.cortex.audit_log.verify()
    assert (found.at, f"row {ROWS} was" in found.problem, f"is {ROWS - 2}." in found.problem) == (ROWS - 1, True, True)
    for number in range(4):  # grows past where it was
        await kept.log.add("", "test.row", f"again {number}")
    found = await kept.cortex.audit_log.verify()
    assert (found.at, "another one" in found.problem) == (ROWS, True)
    assert next(one for one in await kept.cortex.doctor.examine() if one.name == "audit log").state == "bad"
    said = run(["audit", "accept"], env=environment(kept.home), cwd=kept.home).stdout
    assert (await kept.cortex.audit_log.verify()).head in said
    assert (await kept.cortex.audit_log.verify()).problem == ""
    assert [row.action for row in await kept.log.list(1)] == ["audit.accepted"]


async def test_a_head_put_back_does_not_hide_a_cut_from_a_head_kept_elsewhere(kept: Kept) -> None:
    earlier = (kept.home / FILE).read_bytes()
    await kept.log.add("", "test.row", "one more")
    elsewhere = (await kept.cortex.audit_log.verify()).head
    await kept.behind_the_guard(CUT, last=ROWS)
    (kept.home / FILE).write_bytes(earlier)
    assert (await kept.cortex.audit_log.verify()).problem == ""
    assert "was cut" in (await kept.cortex.audit_log.verify(elsewhere)).problem
    with pytest.raises(UserError, match="NUMBER:HASH"):
        await kept.cortex.audit_log.verify("7")


@pytest.mark.parametrize("change", ["gone", "made up"])
async def test_a_head_that_is_gone_or_made_up_is_said_and_not_made_anew(kept: Kept, change: str) -> None:
    file = kept.home / FILE
    if change == "gone":
        file.unlink()
    else:
        file.write_text(json.dumps({**json.loads(file.read_text()), "number": 2}))
    await kept.log.add("", "test.row", "one more")
    assert "not ours" in (await kept.cortex.audit_log.verify()).problem


async def test_a_kill_between_row_and_head_leaves_it_a_row_behind_and_the_next_row_makes_up_for_it(kept: Kept) -> None:
    before = (kept.home / FILE).read_bytes()
    await kept.log.add("", "test.row", "committed")
    (kept.home / FILE).write_bytes(before)  # as a kill right after the commit leaves it
    assert (await kept.cortex.audit_log.verify()).problem == ""
    await kept.log.add("", "test.row", "next")
    assert json.loads((kept.home / FILE).read_text())["number"] == ROWS + 2


async def test_two_processes_that_write_at_once_leave_one_chain_and_its_newest_head(kept: Kept) -> None:
    async with Cortex.at_rest(house_settings(kept.home)) as other:
        there = other.runtime.db.repository(AuditRepository)
        await asyncio.gather(
            *(log.add("", "test.row", f"side by side {number}") for number in range(10) for log in (kept.log, there))
        )
    assert (await kept.cortex.audit_log.verify()).problem == ""
    assert json.loads((kept.home / FILE).read_text())["number"] == ROWS + 20


async def begun_and_failed(kept: Kept) -> None:
    async with kept.cortex.runtime.db.transaction() as repository:
        await repository(AuditRepository).add("", "test.row", "never")
        raise UserError("whatever fails")


async def test_a_row_that_is_rolled_back_leaves_the_head_where_it_was(kept: Kept) -> None:
    before = (kept.home / FILE).read_bytes()
    with pytest.raises(UserError, match="whatever fails"):
        await begun_and_failed(kept)
    assert (kept.home / FILE).read_bytes() == before


async def test_the_migration_keys_rows_that_hold_and_leaves_the_first_that_does_not(kept: Kept) -> None:
    db = kept.cortex.runtime.db
    await db.move_to("0011")
    unkeyed = [row.hash for row in await kept.log.list()]
    await db.move_to("head")
    assert (await kept.cortex.audit_log.verify()).problem == ""
    assert not set(unkeyed) & {row.hash for row in await kept.log.list()}
    await db.move_to("0011")
    await kept.behind_the_guard("UPDATE audit SET subject = 'changed long ago' WHERE number = 3")
    await db.move_to("head")
    found = await kept.cortex.audit_log.verify()
    assert (found.entries, found.at) == (2, 3)


@pytest.mark.parametrize(
    ("statement", "at"),
    [
        ("UPDATE audit SET subject = 'nothing to see' WHERE number = 4", 6),
        ("DELETE FROM audit WHERE number > 4", 5),
        ("INSERT INTO audit SELECT 7, at, actor, action, 'Bob', detail, '', '' FROM audit WHERE number = 6", 7),
    ],
    ids=["rewritten", "cut", "added"],
)
async def test_tables_said_to_be_of_before_the_key_get_no_forged_log_keyed(kept: Kept, statement: str, at: int) -> None:
    head = (kept.home / FILE).read_bytes()
    await kept.cortex.runtime.db.move_to("0011")
    (kept.home / FILE).write_bytes(head)  # who takes the tables back by hand cannot reach it
    await kept.behind_the_guard(statement)
    await hashed_anew_from(kept, 1)
    await kept.cortex.runtime.db.move_to("head")
    assert (await kept.cortex.audit_log.verify()).at == at


async def test_admins_are_told_the_head_once_a_week_and_at_once_what_is_wrong(kept: Kept) -> None:
    ada = await kept.cortex.accounts.named("ada")
    notices = kept.cortex.runtime.db.repository(NoticesRepository, ada.id)
    await kept.cortex.audit_log.notify_admins()
    assert await notices.list(limit=10) == [], "its first week tells nobody anything"
    for _ in range(2):
        await replace(kept.cortex.audit_log, clock=lambda: now() + timedelta(days=8)).notify_admins()
    (told,) = await notices.list(limit=10)
    assert (await kept.cortex.audit_log.verify()).head in told.text
    await kept.behind_the_guard("UPDATE audit SET subject = 'x' WHERE number = 2")
    await kept.cortex.audit_log.notify_admins()
    newest = next(iter(await notices.list(limit=10)))
    assert ("was changed" in newest.title, newest.urgency) == (True, "high")


async def test_a_restart_is_written_down_with_who_asked_and_why(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house, background_tasks(house.cortex.restarts.until_due):
        await house.conversation()
        await house.cortex.restarts.ask(house.admin, "a new certificate")
        (row, *_) = await house.cortex.runtime.db.repository(AuditRepository).list()
    assert (row.actor, row.action, json.loads(row.detail)["reason"]) == (
        house.admin.id,
        "server.restart",
        "a new certificate",
    )
