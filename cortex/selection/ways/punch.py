"""Punch: a core set, and contextual groups that come in by phrases and tool context and stay for the conversation.

The groups are Cortex's categories, each by the table beside this and by the phrases of two words and more that were
added to it. Permission is per tool: a group brings those of its tools that are permitted.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from unicodedata import category

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.stage import stage
from cortex.selection.types import SNAPSHOTS_KEPT, PlanInput, Snapshot, ToolEntry
from cortex.selection.words import text

SCANNED_MESSAGES, SCANNED_CHARACTERS = 4, 200
_TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CORE: tuple[str, ...] = tuple(_TABLE["core"])
GROUPS: dict[str, list[str]] = _TABLE["groups"]
GRANTED = "granted, and none of its tools is core"
# Two characters that people see as one: joined, a skin tone behind its sign, the letters of a flag.
_JOINED = re.compile("\u200d.|.[\u200d\U0001f3fb-\U0001f3ff]|[\U0001f1e6-\U0001f1ff]{2}", re.DOTALL)


@stage("groups of tools, by phrases and use", speaks_as=("core",))
def groups(given: PlanInput, index: Index, draft: PlanDraft, *, core: tuple[str, ...] = CORE) -> PlanDraft:
    """The draft with the core in its order, then each group in the order in which it was activated.

    A role that is a fixed list of tools, as a job's is, is sent as it is.
    """
    business, listed = draft.rights.business, (*given.role.tools, *given.role.admin_tools)
    if listed and index.names.issuperset(listed):
        active, pins = {}, dict.fromkeys((entry.name for entry in business), _vote("the role is a fixed list of tools"))
    else:
        active = _active(given, business)
        core_vote = Vote(stage="core", p=0.0, why="core of this way")
        pins = {name: core_vote for name in core if name in draft.rights.names}
    for group, why in active.items():
        vote = _vote(f"group {group}: {why}")
        pins |= {entry.name: vote for entry in business if entry.category == group and entry.name not in pins}
    out = [entry for entry in business if entry.name not in pins]
    return replace(
        draft,
        pins=pins,
        wanted=tuple(pins),
        grown=tuple(active),
        threshold=0.0,
        dropped={entry.name: _vote(f"its group {entry.category} is not active") for entry in out},
        labels={"hash": fingerprint([index.entries[name] for name in pins])},
    )


def _vote(why: str) -> Vote:
    return Vote(stage="groups", p=0.0, why=why)


def _active(given: PlanInput, business: Sequence[ToolEntry]) -> dict[str, str]:
    """Group -> why, those of earlier messages first: nothing that grew goes away or moves.

    Of a role that names what it may use, a category without a core tool is active at once: else it would be invisible.
    """
    role, homes = given.role, {entry.name: entry.category for entry in business}
    active = dict.fromkeys(given.memory.grown_by(given.recipe), "active since earlier in this conversation")
    if "all" not in role.tools and not (given.is_admin and "all" in role.admin_tools):
        has_core = {homes.get(name) for name in CORE}
        granted = dict.fromkeys((name for name in homes.values() if name not in has_core), GRANTED)
        active |= {name: why for name, why in granted.items() if name not in active}
    told = _scanned(given)
    said = [f" {' '.join(text.words(each))} " for texts, _ in told for each in texts]
    called = {homes[name]: name for _, names in reversed(told) for name in reversed(names) if name in homes}
    for name, phrases in _phrases(given.snapshot).items():
        phrase = next((phrase for phrase in phrases if any(phrase in each for each in said)), "")
        if phrase:
            active.setdefault(name, f'"{phrase.strip()}" was said')
        elif name in called:
            active.setdefault(name, f"{called[name]} was called")
    return active


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def _phrases(snapshot: Snapshot) -> dict[str, list[str]]:
    """Group -> its phrases, cut on word bounds, in a fixed order: the table's, then other categories' as registered."""
    told = {name: list(phrases) for name, phrases in GROUPS.items()}
    for domain in snapshot.domains:
        said = (trigger.text for trigger in domain.triggers if len(text.words(trigger.text)) > 1)
        told.setdefault(domain.name, []).extend(said)
    return {name: [f" {' '.join(text.words(each))} " for each in phrases] for name, phrases in told.items()}


def _scanned(given: PlanInput) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Texts and called tools of the last four messages: answers, calls with results, what was asked, this one last.

    Results are words from outside: they may bring in a group, whose tools still are the permitted ones alone.
    """
    told: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for turn in given.past[-SCANNED_MESSAGES:]:
        calls = (tuple(map(cut, (*turn.arguments, *turn.results))), turn.called)
        told += [((turn.user,), ()), calls, ((turn.assistant,), ())]
        told = [each for each in told if any(each)]
    return [*told, ((given.message,), given.found)][-SCANNED_MESSAGES:]


def cut(words: str) -> str:
    """The first 200 characters of a text, never a part of one: an accent or a joined emoji stays with its letter."""
    end = min(SCANNED_CHARACTERS, len(words))
    while 0 < end < len(words) and (category(words[end]).startswith("M") or _JOINED.match(words, end - 1)):
        end -= 1
    return words[:end]


def fingerprint(entries: Iterable[ToolEntry]) -> str:
    """A hash over names and schemas in their order, which tells a change: FNV-1a, the same on every machine."""
    told = ([entry.name, entry.full.description, entry.full.parameters] for entry in entries)
    return _fnv(b"".join(_fnv(json.dumps(each, sort_keys=True).encode()) for each in told)).hex()


@lru_cache(maxsize=4_096)
def _fnv(data: bytes) -> bytes:
    """Fowler, Noll, Vo: FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value.to_bytes(8, "big")
