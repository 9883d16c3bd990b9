"""What the versions before left: lists that are shared stay accepted, tokens become those of outside text."""

from datetime import timedelta

from sqlalchemy import text

from cortex.storage.accounts import AccountsRepository
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.approvals import GrantsRepository
from cortex.storage.db import Database
from cortex.storage.preferences import AllPreferencesRepository, PreferencesRepository
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.tasks import TasksRepository
from tests.sharing import share
from tests.still_clock import StillClock

TOLD = "tokens.became_outside"


async def token(db: Database, owner_id: str, name: str, clock: StillClock) -> None:
    await db.repository(ApiTokensRepository, owner_id).add(
        name,
        name=name,
        digest=name,
        hint="0000",
        is_pass_through=False,
        role="orchestrator",
        tools=None,
        limit_tokens=None,
        limit_usd=None,
        per_minute=60,
        wait_s=120,
        is_own_words=True,
        expires_at=clock() + timedelta(days=400),
    )


async def test_a_home_of_the_version_before_goes_on(db: Database, ann: str, ben: str, clock: StillClock) -> None:
    await db.repository(TasksRepository, ann).create("milk", "Milk", "shopping", is_tainted=False)
    await share(db, ann, "shopping", [ben])
    for name in ("one", "two"):
        await token(db, ann, name, clock)
    kept = [one.expires_at for one in await db.repository(ApiTokensRepository, ann).list()]
    await db.repository(GrantsRepository, ann).add("shell_exec", "df #1", None, clock() + timedelta(hours=1))
    await db.move_to("0032")
    await db.migrate()
    assert [task.title for task in await db.repository(TasksRepository, ben).list()] == ["Milk"]
    assert await db.repository(SharedListsRepository, ben).invitations() == []
    tokens = await db.repository(ApiTokensRepository, ann).list()
    assert [one.is_own_words for one in tokens] == [False, False]
    assert [one.expires_at for one in tokens] == kept
    assert await db.repository(PreferencesRepository, ann).get(TOLD) is True
    assert await db.repository(AllPreferencesRepository).marked(TOLD) == [ann], "only who had tokens is told"
    (grant,) = await db.repository(GrantsRepository, ann).list()
    assert (grant.readers, grant.job_id) == ("", None)


async def test_moving_down_makes_no_invitation_a_membership(
    db: Database, ann: str, ben: str, clock: StillClock
) -> None:
    await db.repository(TasksRepository, ann).create("milk", "Milk", "shopping", is_tainted=False)
    await db.repository(SharedListsRepository, ann).share("shopping", [ben])
    later = clock() + timedelta(hours=1)
    await db.repository(GrantsRepository, ann).add("", "a list", None, later, readers="list:1:x", job_id="job")
    await db.repository(PreferencesRepository, ann).set(TOLD, True)
    await db.move_to("0032")
    async with db.read.connect() as connection:
        for table in ("task_list_members", "grants", "preferences"):
            assert (await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one() == 0  # noqa: S608
    await db.migrate()
    assert [one.id for one in await db.repository(AccountsRepository).list()] == [ann, ben]
