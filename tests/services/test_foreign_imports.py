"""Whatever is given to be read: the daemon goes on, stays small, and says in words what was wrong with it."""

import asyncio
import copy
import gc
import io
import os
import re
import resource
import time
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import cortex
from cortex.base.errors import CortexError, UserError
from cortex.integrations.foreign.documents import DocumentReader
from cortex.integrations.foreign.door import ForeignFiles
from cortex.integrations.sandbox import Sandbox
from cortex.services.backup import archive
from cortex.services.models.store import RegistryStore
from cortex.services.roles.files import fields_of
from tests.hostile_imports import ALL, BACKUPS, CHATS, CRONTABS, SKILLS, TEXTS, skill, zipped
from tests.living_house import LivingHouse

MOST_S = 0.2
MOST_BYTES = 64_000_000
TICK_S = 0.002
PAGE_BYTES = resource.getpagesize()

Door = Callable[[LivingHouse, bytes], Awaitable[str]]


@dataclass(slots=True)
class Seen:
    """What the loop's thread took between two looks, and by how much the process grew, at the worst."""

    held_s: float = 0.0
    grown_bytes: int = 0


@asynccontextmanager
async def watched() -> AsyncIterator[Seen]:
    """Look at the event loop and the memory of this process, all the time; processor time, so that load is nothing."""
    gc.collect()
    loop, seen, first_bytes = asyncio.get_running_loop(), Seen(), _held_bytes()
    last_s, handle = time.thread_time(), None

    def look() -> None:
        nonlocal last_s, handle
        at_s = time.thread_time()
        seen.held_s = max(seen.held_s, at_s - last_s)
        seen.grown_bytes = max(seen.grown_bytes, _held_bytes() - first_bytes)
        last_s, handle = time.thread_time(), loop.call_later(TICK_S, look)

    look()
    try:
        yield seen
    finally:
        look()
        if handle is not None:
            handle.cancel()


def _held_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


async def _skills(house: LivingHouse, data: bytes) -> str:
    return str(await house.cortex.skills.bring_in(house.member, io.BytesIO(data)))


async def _saved_skill(house: LivingHouse, data: bytes) -> str:
    name = next((row.name for row in await house.cortex.skills.list(house.admin)), "")
    name = name or await house.cortex.skills.create(house.admin, "Mine", "x")
    kept, text = await house.cortex.skills.read(house.admin, name), data.decode("utf-8", "replace")
    trial = await house.cortex.skills.trial(house.admin, name, text, "hello")
    return trial.error or await house.cortex.skills.write(house.admin, name, text, kept.version)


async def _chats(house: LivingHouse, data: bytes) -> str:
    await house.cortex.chat_imports.read(house.admin, io.BytesIO(data))
    state = await house.cortex.chat_imports.state(house.admin)
    return str(state)


async def _crontab(house: LivingHouse, data: bytes) -> str:
    return str(len(await house.cortex.jobs.crontab(house.admin, data.decode("utf-8", "replace"))))


async def _document(house: LivingHouse, data: bytes) -> str:
    async with DocumentReader(Sandbox(), is_boxed=False).session() as session:
        return str(await session.extract(io.BytesIO(data), "a.txt")) and "read"


async def _backup(house: LivingHouse, data: bytes) -> str:
    path = house.cortex.settings.home / "given.backup"
    await asyncio.to_thread(path.write_bytes, data)
    return str(await asyncio.to_thread(archive.read, path, ""))


async def _models(house: LivingHouse, data: bytes) -> str:
    path = house.cortex.homes.home_of(house.member.id).path / "model_registry.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(path.write_bytes, data[:8_000_000])
    return (
        "read"
        if await RegistryStore(house.cortex.runtime.db, house.cortex.homes, house.cortex.vault).read(house.member.id)
        else ""
    )


async def _role(house: LivingHouse, data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return " ".join(["read", *fields_of(text[:1_000_000], "roles/x.md")])


DOORS: dict[str, Door] = {
    "skills": _skills,
    "a skill by hand": _saved_skill,
    "chats": _chats,
    "a crontab": _crontab,
    "a document": _document,
    "a backup": _backup,
    "models": _models,
    "a role": _role,
}
OWN = [
    *((door, what) for door in ("models", "a role", "a skill by hand") for what in TEXTS),
    *(("skills", what) for what in SKILLS),
    *(("chats", what) for what in CHATS),
    *(("a crontab", what) for what in CRONTABS),
    *(("a backup", what) for what in BACKUPS),
]
SLOW = {"a list of a gigabyte", "empty lists in a list", "32 million empty lists", "a file of 65,535 files"}
NAMED = [
    ("skills", "aliases seven levels deep"),
    ("skills", "tens of thousands of skills in one body"),
    ("skills", "a hundred skills in one body"),
    ("chats", "32 million empty lists"),
    ("chats", "archives in archives"),
    ("a crontab", "a crontab of one line"),
    ("a backup", "a list of a million entries"),
    ("a backup", "facts that are a list"),
    ("a skill by hand", "flow in flow"),
]


async def said(door: str, house: LivingHouse, data: bytes) -> tuple[str, Seen]:
    """What a person is told, in words."""
    async with watched() as seen:
        try:
            words = await DOORS[door](house, data)
        except CortexError as error:
            words = error.message
    return words, seen


def _is_harmless(words: str, seen: Seen) -> bool:
    return bool(words) and "Traceback" not in words and seen.held_s <= MOST_S and seen.grown_bytes <= MOST_BYTES


async def _all(house: LivingHouse, pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> dict[str, object]:
    """What held the daemon up, grew it, or ended without words."""
    await said("chats", house, b"[]")  # what is imported once
    found: dict[str, object] = {}
    for door, what in pairs:
        data = ALL[what]()
        words, seen = await said(door, house, data)
        if not _is_harmless(words, seen):
            found[f"{door}: {what}"] = (words[:100], seen)
    return found


async def test_the_named_attacks_hold_nobody_up(house: LivingHouse) -> None:
    assert await _all(house, NAMED) == {}


@pytest.mark.full
async def test_no_hostile_file_holds_the_daemon_up_at_its_own_door(house: LivingHouse) -> None:
    assert await _all(house, OWN) == {}


@pytest.mark.full
async def test_no_hostile_file_holds_the_daemon_up_at_any_door(house: LivingHouse) -> None:
    assert await _all(house, [(door, what) for door in DOORS for what in ALL if what not in SLOW]) == {}


async def test_without_a_sandbox_it_is_read_all_the_same_within_limits(house: LivingHouse) -> None:
    house.cortex.skill_files._foreign = ForeignFiles(Sandbox(), is_boxed=False)
    assert (await said("skills", house, ALL["aliases seven levels deep"]()))[0].count("anchors") == 1
    made = await house.cortex.skills.bring_in(house.admin, io.BytesIO(skill("name: tea\ndescription: x")))
    assert made.added == ["tea"]


async def test_files_that_are_the_same_bytes_are_not_unpacked_twice(house: LivingHouse) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("tea/SKILL.md", skill("name: tea\ndescription: x"))
        twin = copy.copy(file.filelist[0])
        twin.filename = "tea/more.md"
        file.filelist.append(twin)
    with pytest.raises(UserError, match="same bytes"):
        await house.cortex.skills.bring_in(house.admin, made)
    assert not await house.cortex.skills.list(house.admin)


async def test_no_program_runs_when_nothing_is_read(house: LivingHouse) -> None:
    data = zipped(("tea/SKILL.md", skill("name: tea\ndescription: 'About C # code'")))
    await house.cortex.skills.bring_in(house.admin, io.BytesIO(data))
    assert [one for one in _children() if b"foreign import program" in one] == []
    started: list[str] = []

    class Counted(ForeignFiles):
        async def read(self, reader: str, *given: object, **more: object) -> None:
            started.append(reader)

    house.cortex.skill_files._foreign = Counted(Sandbox(), is_boxed=False)
    assert [row.description for row in await house.cortex.skills.list(house.admin)] == ["About C # code"]
    here = await house.conversation()
    await house.say(here, "hello")
    assert started == []


def _children() -> list[bytes]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"PPid:\t{os.getpid()}\n" in (folder / "status").read_text():
                found.append((folder / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def test_nothing_but_the_program_for_foreign_files_parses_yaml_or_opens_archives_of_people() -> None:
    root = Path(cortex.__file__).parents[1]
    sources = {
        str(path.relative_to(root)): path.read_text()
        for top in ("cortex", "web")
        for path in (root / top).rglob("*.py")
    }
    assert {place for place, text in sources.items() if re.search(r"^(import|from) yaml", text, re.M)} == {
        "cortex/integrations/foreign/yaml_texts.py",
        "cortex/integrations/parsers.py",  # a program of its own too
    }
    assert {place for place, text in sources.items() if re.search(r"zipfile\.ZipFile\((?![^)]*, \"w\")", text)} == {
        "cortex/integrations/documents/packed.py",
        "cortex/integrations/foreign/zips.py",
        "cortex/integrations/upkeep/building.py",  # wheels that pip built from our own sources
    }
    readers = "cortex.integrations.foreign.readers"
    importing = [place for place, text in sources.items() if f"from {readers}" in text or f"import {readers}" in text]
    assert [place for place in importing if not place.startswith(f"{readers.replace('.', '/')}/")] == []
