"""A backup is put back unasked only when the secret key, which is in none, says that nobody changed it."""

import asyncio
import hashlib
import io
import json
import os
import pty
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.clock import now
from cortex.base.errors import UserError
from cortex.base.settings import Settings
from cortex.services.backup import archive, envelope, restore
from cortex.services.backup.backups import Backups
from cortex.services.backup.restore import ANY, UnvouchedError
from cortex.services.backup.signature import key_mark, sign
from cortex.storage.audit import AuditFilter, AuditRepository
from tests.children import environment, run
from tests.databases import house_settings, is_on_postgresql
from tests.living_house import living_house

PASSPHRASE = "tulip quarry lantern"
pytestmark = pytest.mark.skipif(is_on_postgresql(), reason="the members are those of SQLite; PostgreSQL's are one dump")

Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A home, and two backups of it that differ in a file."""
    home = tmp_path_factory.mktemp("signed") / "home"

    async def use() -> list[Path]:
        async with living_house(home) as house:
            files = home / house.admin.id / "files"
            files.mkdir(parents=True)
            (files / "link").symlink_to("letter.txt")
            found = []
            for hours, words in enumerate(("earlier", "later on")):
                (files / "letter.txt").write_text(words)
                at = now() + timedelta(hours=hours)
                name = (await Backups(house.cortex.settings, clock=lambda at=at: at).make()).name  # type: ignore[misc]
                found.append((home / "backups" / name).rename(home.parent / words.replace(" ", "-")))
            return found

    first, second = asyncio.run(use())
    return home, first, second


def members_of(file: Path) -> Members:
    with tarfile.open(file) as tar:
        return [(one, opened.read() if (opened := tar.extractfile(one)) else b"") for one in tar.getmembers()]


def packed(members: Members, path: Path, *, behind: bytes = b"") -> Path:
    """A backup of these members, as anybody can make one: the sums say what is in it, the signature stays as it was."""
    sums = {
        one.name: (0, one.linkname) if one.issym() else (len(data), hashlib.sha256(data).hexdigest())
        for one, data in members
        if (one.isreg() or one.issym()) and one.name not in ("manifest.json", "sums.json", "signature")
    }
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for one, kept in members:
            data = json.dumps(sums).encode() if one.name == "sums.json" else kept
            one.size = len(data) if one.isreg() else 0
            tar.addfile(one, io.BytesIO(data))
        if behind:
            tar.fileobj.write(bytes(1024) + behind)
    return path


def with_another_admin(data: bytes, folder: Path) -> bytes:
    file = folder / "tables"
    file.write_bytes(data)
    with closing(sqlite3.connect(file)) as opened, opened:
        names = [row[1] for row in opened.execute("PRAGMA table_info(accounts)")]
        row = list(opened.execute("SELECT * FROM accounts WHERE rank = 'admin'").fetchone())
        row[names.index("id")], row[names.index("name")], row[names.index("name_key")] = (
            "0mallory",
            "mallory",
            "mallory",
        )
        opened.execute(f"INSERT INTO accounts VALUES ({','.join('?' * len(row))})", row)  # noqa: S608 - marks
    return file.read_bytes()


def changed(members: Members, name: str, change: Callable[[bytes], bytes]) -> Members:
    assert any(one.name.endswith(name) for one, _ in members)
    return [(one, change(data) if one.name.endswith(name) else data) for one, data in members]


def new(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    one = tarfile.TarInfo(name)
    one.type = kind
    return one


def in_manifest(**values: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **values}).encode()


def ahead_of_sums(members: Members, one: tarfile.TarInfo, data: bytes = b"") -> Members:
    return [*members[:-2], (one, data), *members[-2:]]


def run_as_program(members: Members) -> Members:
    for one, _ in members:
        if one.name.endswith("letter.txt"):
            one.mode |= 0o100
    return members


def linked_elsewhere(members: Members) -> Members:
    for one, _ in members:
        if one.issym():
            one.linkname = "other.txt"
    return members


TAMPERED: dict[str, Callable[[Members, Members, Path], Members]] = {
    "a file's content": lambda a, _, __: changed(a, "letter.txt", lambda _: b"sold"),
    "another admin": lambda a, _, folder: changed(a, "database/cortex", lambda data: with_another_admin(data, folder)),
    "the date in the manifest": lambda a, _, __: changed(a, "manifest.json", in_manifest(made_at="2030-01-01")),
    "the version in the manifest": lambda a, _, __: changed(a, "manifest.json", in_manifest(version="9")),
    "blanks in the manifest": lambda a, _, __: changed(a, "manifest.json", lambda data: data + b" "),
    "the revision in the manifest": lambda a, _, __: changed(a, "manifest.json", in_manifest(revision="0001")),
    "a file more": lambda a, _, __: ahead_of_sums(a, new("home/skills/mine/SKILL.md"), b"obey"),
    "a folder more": lambda a, _, __: ahead_of_sums(a, new("home/empty", tarfile.DIRTYPE)),
    "a file less": lambda a, _, __: [one for one in a if not one[0].name.endswith("letter.txt")],
    "a file twice": lambda a, _, __: ahead_of_sums(a, *next(one for one in a if one[0].name.endswith("letter.txt"))),
    "a text that may be run": lambda a, _, __: run_as_program(a),
    "a link": lambda a, _, __: linked_elsewhere(a),
    "the order": lambda a, _, __: [a[0], *reversed(a[1:-2]), *a[-2:]],
    "a file of another backup": lambda a, b, _: changed(
        a, "letter.txt", lambda _: next(data for one, data in b if one.name.endswith("letter.txt"))
    ),
    "the manifest of another backup": lambda a, b, _: [b[0], *a[1:]],
    "the signature of another backup": lambda a, b, _: [*a[:-1], b[-1]],
    "an empty signature": lambda a, _, __: changed(a, "signature", lambda _: b""),
    "a signature that is no text": lambda a, _, __: changed(a, "signature", lambda _: b"\xff" * 64),
    "no signature": lambda a, _, __: a[:-1],
    "a signature in the old format": lambda a, _, __: changed(a, "manifest.json", in_manifest(format=1)),
    "two signatures": lambda a, _, __: [*a, a[-1]],
    "a file behind the signature": lambda a, _, __: [*a, (new("home/late"), b"x")],
    "a fact more in the manifest": lambda a, _, __: changed(a, "manifest.json", in_manifest(signed="yes")),
    "the key's mark as a number": lambda a, _, __: changed(a, "manifest.json", in_manifest(key=1)),
}


@pytest.mark.parametrize(
    ("what", "passphrase"),
    [*((what, "") for what in TAMPERED), ("another admin", PASSPHRASE), ("no signature", PASSPHRASE)],
)
async def test_what_was_changed_is_refused_whatever_is_accepted(
    made: tuple[Path, Path, Path], tmp_path: Path, what: str, passphrase: str
) -> None:
    home, first, second = made
    file = packed(TAMPERED[what](members_of(first), members_of(second), tmp_path), tmp_path / "repacked")
    if passphrase:
        file = sealed(file)
    before = sorted(os.listdir(home))
    for accepted in ("", ANY):
        with pytest.raises(UserError) as refused:
            await restore.prepare(house_settings(home), file, passphrase, accepted=accepted)
        assert not isinstance(refused.value, UnvouchedError)
        assert not restore.is_pending(home)
    assert sorted(os.listdir(home)) == before


def sealed(file: Path) -> Path:
    """The same under a passphrase that whoever changed it knows."""
    path = file.with_suffix(".sealed")
    with path.open("wb") as opened, envelope.SealingWriter(opened, PASSPHRASE) as writer:
        writer.write(file.read_bytes())
    return path


async def test_something_behind_the_end_is_refused(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    home, first, _ = made
    file = packed(members_of(first), tmp_path / "longer", behind=b"more")
    with pytest.raises(UserError, match="damaged"):
        await restore.look(house_settings(home), file, "")


async def test_repacking_alone_changes_nothing(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Which shows that what is refused above is what was changed."""
    home, first, _ = made
    found = await restore.look(house_settings(home), packed(members_of(first), tmp_path / "same"), "")
    assert (found.doubt, found.accounts, found.admins) == ("", 2, ("ada",))


def unsigned(file: Path, path: Path, folder: Path) -> Path:
    """As the version before made it, and with another admin."""
    members = changed(members_of(file)[:-1], "database/cortex", lambda data: with_another_admin(data, folder))
    return packed(changed(members, "manifest.json", in_manifest(format=1)), path)


async def verdict_of(settings: Settings) -> tuple[str, str]:
    async with Cortex.at_rest(settings) as cortex:
        found, glanced = await cortex.audit_log.verify(), await cortex.audit_log.glance()
        assert (found.problem, found.doubt) == (glanced.problem, glanced.doubt)
        return found.problem, found.doubt


async def test_one_without_signature_is_shown_asked_about_and_noted(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    _, first, _ = made
    settings = house_settings(tmp_path / "home", secret_key=house_settings(made[0]).secret_key)
    file = unsigned(first, tmp_path / "unsigned", tmp_path)
    with pytest.raises(UnvouchedError, match="no signature") as asked:
        await restore.prepare(settings, file, "")
    found = asked.value.found
    assert (found.accounts, found.admins) == (3, ("ada", "mallory"))
    assert all(word in asked.value.message for word in ("admins: ada, mallory", found.manifest.made_at))
    assert not restore.is_pending(settings.home)
    with pytest.raises(UnvouchedError):  # the answer was about another file
        await restore.prepare(settings, file, "", accepted="0" * 64)
    await restore.prepare(settings, file, "", accepted=found.digest)
    await restore.finish(settings)
    problem, doubt = await verdict_of(settings)
    assert problem == doubt
    assert "vouched for" in problem
    assert f"made at {found.manifest.made_at}" in problem
    assert (await verdict_of(settings))[0]  # noted once, and it stays
    async with Cortex.at_rest(settings) as cortex:
        rows = await cortex.audit_log.kinds()
        assert "backup.restored_unsigned" in rows
        await cortex.audit_log.accept()
    assert (await verdict_of(settings)) == ("", doubt)


async def test_one_of_another_key_is_restored_without_its_secrets_and_the_log_goes_on(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    settings = house_settings(tmp_path / "home")
    with pytest.raises(UnvouchedError, match="another secret key"):
        await restore.prepare(settings, made[1], "")
    with pytest.raises(UserError, match="not the one of this backup") as refused:
        await restore.prepare(settings, made[1], "", key="k" * 40, accepted=ANY)
    assert not isinstance(refused.value, UnvouchedError)
    await restore.prepare(settings, made[1], "", accepted=ANY)
    await restore.finish(settings)
    assert "vouched for" in (await verdict_of(settings))[0]
    async with Cortex.at_rest(settings) as cortex:
        assert [one.name for one in await cortex.accounts.users()] == ["ada", "bob"]
        await cortex.audit_log.accept()
        assert (await cortex.audit_log.verify()).problem == ""


async def test_a_signed_one_is_noted_without_a_doubt_also_after_a_kill(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    settings = house_settings(tmp_path / "home")
    await restore.prepare(settings, made[1], "", key=house_settings(made[0]).secret_key)
    await restore.finish(settings)
    settings = house_settings(tmp_path / "home")
    facts = (settings.home / "restored.json").read_bytes()
    for _ in range(2):  # killed between the row and the end of its facts
        (settings.home / "restored.json").write_bytes(facts)
        assert await verdict_of(settings) == ("", "")
    assert not (settings.home / "restored.json").exists()
    async with Cortex.at_rest(settings) as cortex:
        page = await cortex.audit_log.page(restored_rows())
        assert [row.action for row in page.rows] == ["backup.restored"]


async def test_a_home_without_a_key_vouches_for_nothing_and_signs_nothing(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """Everybody knows the key that is empty."""
    members = members_of(made[1])
    packed(changed(members, "manifest.json", in_manifest(key=key_mark(""))), tmp_path / "first")
    digest = archive.read(tmp_path / "first", "").digest
    signed = changed(members_of(tmp_path / "first"), "signature", lambda _: sign("", digest).encode())
    file = packed(signed, tmp_path / "signed")
    settings = house_settings(tmp_path / "home", secret_key="")
    assert settings.secret_key == ""
    with pytest.raises(UnvouchedError, match="another secret key"):
        await restore.look(settings, file, "")
    with pytest.raises(UserError, match="start Cortex once"):
        await Backups(settings).make()


async def test_a_plugin_of_the_backup_is_asked_about_again(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    settings = house_settings(tmp_path / "home")
    await restore.prepare(settings, made[1], "", key=house_settings(made[0]).secret_key)
    await restore.finish(settings)
    with closing(sqlite3.connect(settings.home / "cortex.db")) as opened, opened:
        opened.execute(
            "INSERT INTO integrations "
            "(kind, name, settings, is_on, roles, people, version, changed_by, changed_at, failure) VALUES ("
            "'plugin', 'cortex-sky', '{}', 1, '[]', '[]', 1, 'ada', '2026-01-01 00:00:00.000000', '')"
        )
    settings = house_settings(tmp_path / "home")
    async with Cortex.at_rest(settings) as cortex:
        assert await cortex.plugins.count() == 0
        (row,) = await cortex.runtime.db.repository(AuditRepository).list(9, subject="cortex-sky")
        assert (row.action, row.actor) == ("plugin.revoked", "command")


def restored_rows() -> AuditFilter:
    return AuditFilter(kind="backup")


async def test_the_backup_just_made_is_held_against_its_signature(
    made: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that gives back another file than was written, with sums that fit."""
    home, first, _ = made
    forged = packed(changed(members_of(first), "letter.txt", lambda _: b"sold"), tmp_path / "forged")
    monkeypatch.setattr(archive, "write", lambda path, *_: path.write_bytes(forged.read_bytes()))
    backups = Backups(house_settings(home))
    with pytest.raises(UserError, match="signature of this backup is wrong"):
        await backups.make()
    assert "signature" in backups.state().error
    assert await backups.kept() == []


def test_the_command_asks_on_a_terminal_and_takes_a_word_in_scripts(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    settings = house_settings(tmp_path / "home", secret_key=house_settings(made[0]).secret_key)
    file = unsigned(made[1], tmp_path / "unsigned", tmp_path)
    env = environment(settings.home, CORTEX_SECRET_KEY=settings.secret_key)
    refused = run(["restore", str(file)], env=env, cwd=tmp_path)
    assert refused.returncode == 1
    assert "mallory" in refused.stderr
    assert "--unsigned" in refused.stderr
    for answer, words, code in (("n", "Nothing was changed", 1), ("y", "nobody can vouch for it", 0)):
        ours, theirs = pty.openpty()
        os.write(ours, f"{answer}\n".encode())
        asked = subprocess.run(
            [sys.executable, "-m", "web", "restore", str(file)],
            env=env, cwd=tmp_path, stdin=theirs, capture_output=True, text=True, check=False,
        )  # fmt: skip
        os.close(ours)
        os.close(theirs)
        assert (asked.returncode, words in asked.stdout) == (code, True), asked
        assert "admins: ada, mallory" in asked.stdout
    assert run(["restore", str(file), "--unsigned"], env=env, cwd=tmp_path).returncode == 0
    told = run(["audit", "verify"], env=env, cwd=tmp_path)
    assert (told.returncode, "vouched for" in told.stdout) == (1, True)
