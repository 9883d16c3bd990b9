import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from cortex.base.errors import Conflict, CortexError, NotAllowed, NotFound, Throttled, UserError
from cortex.base.settings import load_settings
from cortex.base.user import User
from cortex.services.accounts.accounts import Accounts
from cortex.services.accounts.passwords import Passwords, refuse_weak
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from tests.cheap_passwords import CHEAP, SHIPPED
from tests.still_clock import StillClock

PASSWORD = "green teapot on the moon"
OTHER = "a second long sentence"
HERE = ("192.0.2.7", "Firefox")
ELSEWHERE = ("198.51.100.9", "curl")


class CountingPasswords(Passwords):
    """Real hashing at its cheapest; remembers how many checks were made."""

    def __init__(self) -> None:
        super().__init__(**CHEAP)
        self.checks = 0

    async def check(self, stored: str | None, password: str) -> bool:
        self.checks += 1
        return await super().check(stored, password)


@pytest.fixture
def passwords() -> CountingPasswords:
    return CountingPasswords()


@pytest.fixture
def heard() -> list[str]:
    """Whose access ended, as those hear who close streams and stop turns."""
    return []


@pytest.fixture
async def accounts(
    db: Database, clock: StillClock, tmp_path: Path, passwords: CountingPasswords, heard: list[str]
) -> Accounts:
    async def listen(user_id: str) -> None:
        heard.append(user_id)

    settings = load_settings(None, home=tmp_path / "home", time_zone="Europe/Berlin")
    return Accounts(db, settings, clock, passwords=passwords, access_ended=(listen,))


@pytest.fixture
async def ann(accounts: Accounts) -> User:
    return await accounts.redeem_setup(await accounts.setup_link(), "Ann", PASSWORD)


async def test_a_house_hashes_at_the_cost_that_the_library_advises() -> None:
    stored = await Passwords(**SHIPPED).hash(PASSWORD)
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert await Passwords().check(stored, PASSWORD)
    assert Passwords().is_outdated(stored)
    assert not Passwords(**SHIPPED).is_outdated(stored)


async def actions(db: Database) -> list[tuple[str, str]]:
    return [(entry.action, entry.subject) for entry in reversed(await db.repository(AuditRepository).list())]


async def refused(accounts: Accounts, name: str, password: str, client: tuple[str, str] = HERE) -> CortexError:
    with pytest.raises((NotAllowed, Throttled)) as caught:
        await accounts.login(name, password, *client)
    return caught.value


# --- set-up


async def test_the_first_link_makes_the_admin_once(accounts: Accounts) -> None:
    assert await accounts.has_users() is False
    token = await accounts.setup_link()
    user = await accounts.redeem_setup(token, " Ann ", PASSWORD)
    assert (user.name, user.rank, user.time_zone) == ("Ann", "admin", "Europe/Berlin")
    assert await accounts.has_users() is True
    with pytest.raises(NotAllowed):
        await accounts.redeem_setup(token, "Eve", PASSWORD)
    with pytest.raises(NotAllowed):
        await accounts.setup_link()


async def test_a_setup_link_makes_no_second_admin_once_somebody_has_an_account(accounts: Accounts) -> None:
    token = await accounts.setup_link()
    await accounts.add_user("Ann", "admin", PASSWORD)
    with pytest.raises(NotAllowed):
        await accounts.redeem_setup(token, "Eve", PASSWORD)
    assert [user.name for user in await accounts.users()] == ["Ann"]


async def test_a_setup_link_ends_after_15_minutes_or_with_the_next_one(accounts: Accounts, clock: StillClock) -> None:
    first, second = await accounts.setup_link(), await accounts.setup_link()
    with pytest.raises(NotAllowed, match="already used or has expired"):
        await accounts.redeem_setup(first, "Ann", PASSWORD)
    clock.forward(minutes=15)
    with pytest.raises(NotAllowed, match="already used or has expired"):
        await accounts.redeem_setup(second, "Ann", PASSWORD)


async def test_an_invitation_lives_a_day_and_a_new_password_a_quarter_of_an_hour(
    accounts: Accounts, ann: User, clock: StillClock
) -> None:
    invited, reset = await accounts.add_user("Cy", "member", by=ann.id), await accounts.reset("Ann")
    clock.forward(minutes=15)
    with pytest.raises(NotAllowed):
        await accounts.redeem_setup(reset, "", PASSWORD)
    clock.forward(minutes=23 * 60 + 44)
    assert (await accounts.redeem_setup(invited.token, "", PASSWORD)).name == "Cy"
    late = (await accounts.add_user("Di", "member", by=ann.id)).token
    clock.forward(minutes=24 * 60)
    with pytest.raises(NotAllowed):
        await accounts.redeem_setup(late, "", PASSWORD)


async def test_two_who_redeem_one_link_at_once_make_one_account(accounts: Accounts) -> None:
    token = await accounts.setup_link()
    outcomes = await asyncio.gather(
        *(accounts.redeem_setup(token, name, PASSWORD) for name in ("Ann", "Eve", "Mallory")), return_exceptions=True
    )
    assert sum(isinstance(outcome, User) for outcome in outcomes) == 1
    assert len(await accounts.users()) == 1


async def test_a_poor_password_leaves_the_link_good(accounts: Accounts) -> None:
    token = await accounts.setup_link()
    with pytest.raises(UserError, match="15 characters"):
        await accounts.redeem_setup(token, "Ann", "short")
    with pytest.raises(UserError, match="1 to 60"):
        await accounts.redeem_setup(token, "  ", PASSWORD)
    assert (await accounts.redeem_setup(token, "Ann", PASSWORD)).name == "Ann"


@pytest.mark.parametrize(
    "password",
    [
        "fourteen chars",
        "passwordpassword",
        "Password Password 2026",
        "aaaaaaaaaaaaaaaaaaaa",
        "123456789012345",
        "qwertyuiopasdfgh",
        "correct horse battery staple",
        "AnnMarieAnnMarie1",
        "x" * 1001,
        "." * 20,
    ],
)
def test_passwords_that_are_guessed_first_are_refused(password: str) -> None:
    with pytest.raises(UserError):
        refuse_weak(password, "Ann Marie")


@pytest.mark.parametrize(
    "password", [PASSWORD, "ünïcödé größe straße", "passwordless future ahead", "日本語の長い合言葉を書きます。"]
)
def test_long_passwords_need_no_special_signs(password: str) -> None:
    refuse_weak(password, "Ann")


# --- signing in


async def test_a_login_is_opened_by_its_token_alone(accounts: Accounts, ann: User, db: Database) -> None:
    token = await accounts.login("ANN", PASSWORD, *HERE)
    view = await accounts.who(token)
    assert view is not None
    assert (view.user, view.is_confirmed) == (ann, True)
    assert await accounts.who(token[:-1]) is None
    assert await accounts.who("") is None
    async with db.read.connect() as connection:
        stored = (await connection.execute(text("SELECT * FROM logins"))).one()
    assert token not in map(str, stored)


async def test_a_wrong_name_and_a_wrong_password_look_the_same(
    accounts: Accounts, ann: User, passwords: CountingPasswords
) -> None:
    messages = {(await refused(accounts, *who)).message for who in (("Ann", OTHER), ("Nobody", PASSWORD), ("", ""))}
    assert len(messages) == 1
    assert passwords.checks == 3


async def test_a_login_lives_30_days_from_its_last_use(accounts: Accounts, ann: User, clock: StillClock) -> None:
    token = await accounts.login("Ann", PASSWORD, *HERE)
    clock.forward(days=29)
    assert await accounts.who(token) is not None
    await accounts.note_seen()
    clock.forward(days=29)
    assert await accounts.who(token) is not None
    await accounts.note_seen()
    clock.forward(days=31)
    assert await accounts.who(token) is None
    assert await accounts.logins(ann) == []


async def test_being_seen_twice_within_minutes_writes_nothing(accounts: Accounts, ann: User, clock: StillClock) -> None:
    token = await accounts.login("Ann", PASSWORD, *HERE)
    (before,) = await accounts.logins(ann)
    clock.forward(minutes=4)
    await accounts.who(token)
    await accounts.note_seen()
    assert await accounts.logins(ann) == [before]
    clock.forward(minutes=2)
    await accounts.who(token)
    await accounts.note_seen()
    assert (await accounts.logins(ann))[0].seen_at == clock()


async def test_logging_out_and_revoking_end_logins(accounts: Accounts, heard: list[str], ann: User) -> None:
    tokens = [await accounts.login("Ann", PASSWORD, *HERE) for _ in range(4)]
    await accounts.logout(tokens[0])
    assert await accounts.who(tokens[0]) is None
    view = await accounts.who(tokens[1])
    assert view is not None
    await accounts.revoke(ann, view.login_id)
    assert await accounts.who(tokens[1]) is None
    with pytest.raises(NotFound):
        await accounts.revoke(ann, view.login_id)
    assert [await accounts.who(token) is None for token in tokens] == [True, True, False, False]
    assert heard == [ann.id]


async def test_one_user_cannot_revoke_anothers_login(accounts: Accounts, ann: User) -> None:
    token = await accounts.login("Ann", PASSWORD, *HERE)
    view = await accounts.who(token)
    ben = (await accounts.add_user("Ben", "member", PASSWORD)).user
    assert view is not None
    with pytest.raises(NotFound):
        await accounts.revoke(ben, view.login_id)
    assert await accounts.who(token) is not None
    assert await accounts.logins(ben) == []


# --- throttling


async def test_many_wrong_tries_have_to_wait_and_a_right_one_then_counts_anew(
    accounts: Accounts, ann: User, clock: StillClock, passwords: CountingPasswords
) -> None:
    outcomes = [await refused(accounts, "Ann", OTHER) for _ in range(10)]
    assert [isinstance(outcome, Throttled) for outcome in outcomes] == [False] * 6 + [True] * 4
    assert passwords.checks == 6
    waiting = await refused(accounts, "Ann", PASSWORD)
    assert isinstance(waiting, Throttled)
    clock.forward(seconds=waiting.wait_s)
    assert await accounts.login("Ann", PASSWORD, *HERE)
    assert isinstance(await refused(accounts, "Ann", OTHER), NotAllowed)


async def test_tries_at_one_moment_gain_nothing(accounts: Accounts, ann: User, passwords: CountingPasswords) -> None:
    await asyncio.gather(*(refused(accounts, "Ann", f"guess number {n} of many") for n in range(40)))
    assert passwords.checks == 6


async def test_an_address_that_tries_many_names_has_to_wait(
    accounts: Accounts, ann: User, passwords: CountingPasswords
) -> None:
    for number in range(30):
        await refused(accounts, f"name {number}", OTHER, ELSEWHERE)
    assert passwords.checks == 20
    assert await accounts.login("Ann", PASSWORD, *HERE)


async def test_the_addresses_of_one_line_share_their_tries(
    accounts: Accounts, ann: User, passwords: CountingPasswords
) -> None:
    for number in range(30):
        await refused(accounts, f"name {number}", OTHER, (f"2001:db8:0:7:{number:x}::1", "Firefox"))
    assert passwords.checks == 20
    with pytest.raises(NotAllowed):
        await accounts.login("Ann", OTHER, "2001:db8:0:8::1", "Firefox")
    assert passwords.checks == 21


async def test_strangers_tries_touch_neither_a_live_login_nor_its_address(accounts: Accounts, ann: User) -> None:
    token = await accounts.login("Ann", PASSWORD, *HERE)
    for _ in range(12):
        await refused(accounts, "Ann", OTHER, ELSEWHERE)
    assert await accounts.who(token) is not None
    await accounts.confirm(token, PASSWORD)
    assert await accounts.login("Ann", PASSWORD, *HERE)


# --- the password again, and another one


async def test_the_password_given_again_counts_for_ten_minutes(
    accounts: Accounts, ann: User, clock: StillClock
) -> None:
    token = await accounts.login("Ann", PASSWORD, *HERE)
    clock.forward(minutes=11)
    before = await accounts.who(token)
    await accounts.confirm(token, PASSWORD)
    during = await accounts.who(token)
    clock.forward(minutes=10)
    after = await accounts.who(token)
    assert [view and view.is_confirmed for view in (before, during, after)] == [False, True, False]
    with pytest.raises(NotAllowed):
        await accounts.confirm(token, OTHER)
    with pytest.raises(NotAllowed):
        await accounts.confirm("no token", PASSWORD)


async def test_a_new_password_ends_every_other_login(accounts: Accounts, ann: User) -> None:
    here, there = [await accounts.login("Ann", PASSWORD, *HERE) for _ in range(2)]
    with pytest.raises(NotAllowed):
        await accounts.change_password(here, OTHER, OTHER)
    with pytest.raises(UserError):
        await accounts.change_password(here, PASSWORD, "short")
    renewed = await accounts.change_password(here, PASSWORD, OTHER)
    assert await accounts.who(renewed) is not None
    assert await accounts.who(here) is None
    assert await accounts.who(there) is None
    assert isinstance(await refused(accounts, "Ann", PASSWORD), NotAllowed)
    assert await accounts.login("Ann", OTHER, *HERE)


# --- people


async def test_an_invited_person_sets_a_password_by_link(accounts: Accounts, ann: User) -> None:
    invited = await accounts.add_user("Ben", "member", by=ann.id)
    assert isinstance(await refused(accounts, "Ben", ""), NotAllowed)
    assert await accounts.redeem_setup(invited.token, "", OTHER) == invited.user
    assert await accounts.login("ben", OTHER, *HERE)
    with pytest.raises(NotAllowed):
        await accounts.redeem_setup(invited.token, "", PASSWORD)


async def test_a_reset_link_ends_the_logins_when_it_is_used(accounts: Accounts, ann: User) -> None:
    token = await accounts.login("Ann", PASSWORD, *HERE)
    link = await accounts.reset("ann")
    assert await accounts.who(token) is not None
    await accounts.redeem_setup(link, "ignored", OTHER)
    assert await accounts.who(token) is None
    with pytest.raises(NotFound):
        await accounts.reset("nobody")


@pytest.mark.parametrize("name", ["ann", " ANN ", "\uff21\uff4e\uff4e"], ids=["case", "blanks", "wide letters"])
async def test_names_that_look_alike_cannot_both_exist(accounts: Accounts, ann: User, name: str) -> None:
    with pytest.raises(Conflict):
        await accounts.add_user(name, "member", PASSWORD)


async def test_a_change_of_rank_ends_the_logins_and_the_last_admin_stays(accounts: Accounts, ann: User) -> None:
    with pytest.raises(NotAllowed, match="last admin"):
        await accounts.set_rank("Ann", "member")
    with pytest.raises(NotAllowed, match="last admin"):
        await accounts.set_active("Ann", False)
    await accounts.add_user("Ben", "member", PASSWORD)
    token = await accounts.login("Ben", PASSWORD, *HERE)
    assert (await accounts.set_rank("Ben", "admin", by=ann.id)).is_admin
    assert await accounts.who(token) is None
    assert not (await accounts.set_rank("Ann", "member")).is_admin


async def test_a_closed_account_cannot_be_used_until_it_is_opened_again(accounts: Accounts, ann: User) -> None:
    ben = (await accounts.add_user("Ben", "member", PASSWORD)).user
    token = await accounts.login("Ben", PASSWORD, *HERE)
    await accounts.set_active("Ben", False)
    assert await accounts.who(token) is None
    assert isinstance(await refused(accounts, "Ben", PASSWORD), NotAllowed)
    assert [user.name for user in await accounts.users()] == ["Ann"]
    with pytest.raises(NotFound):
        await accounts.user(ben.id)
    await accounts.set_active("Ben", True)
    assert await accounts.login("Ben", PASSWORD, *HERE)


async def test_the_time_zone_must_be_one(accounts: Accounts, ann: User) -> None:
    assert (await accounts.set_time_zone(ann, "Asia/Tokyo")).time_zone == "Asia/Tokyo"
    with pytest.raises(UserError, match="is not a time zone"):
        await accounts.set_time_zone(ann, "../etc/passwd")


@pytest.mark.parametrize(
    ("typed", "zone"),
    [
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        (" New  York ", "America/New_York"),
        ("São Paulo", "America/Sao_Paulo"),
        ("europe/berlin", "Europe/Berlin"),
        ("utc", "UTC"),
        ("Asia/Calcutta", "Asia/Calcutta"),
    ],
)
async def test_a_city_alone_names_its_time_zone(accounts: Accounts, ann: User, typed: str, zone: str) -> None:
    assert (await accounts.set_time_zone(ann, typed)).time_zone == zone


async def test_a_city_of_several_time_zones_lists_them(accounts: Accounts, ann: User) -> None:
    with pytest.raises(UserError, match=r"several time zones: Asia/Nicosia, Europe/Nicosia\. Write") as refused:
        await accounts.set_time_zone(ann, "nicosia")
    assert refused.value.field == "time_zone"


async def zone_after_login(accounts: Accounts, name: str, browsers: str) -> str:
    await accounts.login(name, PASSWORD, *HERE, time_zone=browsers)
    return (await accounts.named(name)).time_zone


async def test_the_first_login_that_names_a_zone_gives_it_to_the_person(accounts: Accounts, ann: User) -> None:
    await accounts.add_user("Ben", "member", PASSWORD)
    for name in ("Ann", "Ben"):
        assert await zone_after_login(accounts, name, "") == "Europe/Berlin"
        assert await zone_after_login(accounts, name, "Asia/Tokyo") == "Asia/Tokyo"
        assert await zone_after_login(accounts, name, "America/Lima") == "Asia/Tokyo", "on a journey it stays"


@pytest.mark.parametrize("odd", ["Mars/North", "../etc/passwd", "undefined", "x" * 5_000])
async def test_what_is_no_zone_is_ignored_at_a_login(accounts: Accounts, ann: User, odd: str) -> None:
    assert await zone_after_login(accounts, "Ann", odd) == "Europe/Berlin"
    assert await zone_after_login(accounts, "Ann", "Asia/Tokyo") == "Asia/Tokyo", "it was not taken for a choice"


@pytest.mark.parametrize("chosen", ["America/Lima", "Europe/Berlin"], ids=["another", "the default one"])
async def test_a_zone_that_was_chosen_outlives_every_login(accounts: Accounts, ann: User, chosen: str) -> None:
    await accounts.set_time_zone(ann, chosen)
    assert await zone_after_login(accounts, "Ann", "Asia/Tokyo") == chosen


async def test_a_wrong_password_changes_no_zone(accounts: Accounts, ann: User) -> None:
    with pytest.raises(NotAllowed):
        await accounts.login("Ann", OTHER, *HERE, time_zone="Asia/Tokyo")
    assert (await accounts.named("Ann")).time_zone == "Europe/Berlin"


async def test_the_audit_log_tells_who_came_and_what_changed(accounts: Accounts, ann: User, db: Database) -> None:
    await refused(accounts, "Ann", "typed into the wrong field")
    await refused(accounts, "my secret password", "")
    token = await accounts.login("Ann", PASSWORD, *HERE)
    await accounts.add_user("Ben", "member", PASSWORD, by=ann.id)
    await accounts.set_rank("Ben", "admin", by=ann.id)
    await accounts.logout(token)
    assert await actions(db) == [
        ("user.setup", "Ann"),
        ("login.failed", "Ann"),
        ("login.failed", "(no such account)"),
        ("login", "Ann"),
        ("user.added", "Ben"),
        ("user.rank", "Ben"),
        ("logout", "Ann"),
    ]
    assert (await db.repository(AuditRepository).verify()).broken_at is None


async def test_sweeping_forgets_what_is_over(accounts: Accounts, ann: User, clock: StillClock, db: Database) -> None:
    await accounts.login("Ann", PASSWORD, *HERE)
    await accounts.reset("Ann")
    clock.forward(days=40)
    live = await accounts.login("Ann", PASSWORD, *HERE)
    await accounts.sweep()
    async with db.read.connect() as connection:
        counts = [
            (await connection.execute(text(f"SELECT count(*) FROM {name}"))).scalar_one()  # noqa: S608 - our own names
            for name in ("logins", "setup_links")
        ]
    assert counts == [1, 0]
    assert await accounts.who(live) is not None


async def test_at_most_two_passwords_are_hashed_at_a_time() -> None:
    running, most = 0, 0

    class Slow(Passwords):
        def _matches(self, stored: str, password: str) -> bool:
            nonlocal running, most
            running += 1
            most = max(most, running)
            result = super()._matches(stored, password)
            running -= 1
            return result

    passwords = Slow()
    stored = await passwords.hash(PASSWORD)
    answers = await asyncio.gather(*(passwords.check(stored, PASSWORD) for _ in range(6)))
    assert (answers, most) == ([True] * 6, 2)
