"""Core tools and contextual groups: their phrases, what is scanned for them, and the hash that tells a change.

The groups are Cortex's categories. No phrase is one everyday word ("image", "push", "process", "hash" once were).
Each goes by the table and by the phrases of two words and more that were added to its category.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import category

from cortex.selection import text
from cortex.selection.types import PastTurn, RoleView, Snapshot, ToolEntry
from cortex.selection.version_cache import once

SCANNED_MESSAGES, SCANNED_CHARACTERS = 4, 200
CORE = (
    "file_read",
    "file_list",
    "file_write",
    "file_grep",
    "file_stat",
    "shell_exec",
    "web_search",
    "web_read",
    "http_fetch",
    "task_list",
    "task_create",
    "scratch_read",
    "scratch_append",
    "session_search",
    "web_push",
    "cortex_status",
    "agent_notes_read",
    "agent_notes_append",
)
_OFFSET, _PRIME, _BITS = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF
_JOINER = "\u200d"

_GROUPS = {
    "git": "git, git commit, git branch, git diff, git merge, git rebase, git push, git pull, git clone, git stash, "
    "git checkout, git log, commit changes, repository, working tree, which branch, pull request",
    "system": "docker, dockerfile, docker image, compose, kubernetes, kill process, list processes, zip file, unzip, "
    "sha256, md5, hmac, checksum, encrypt, shell command, error logs, server logs, restart cortex, restart yourself, "
    "update cortex, update yourself, upgrade cortex, upgrade yourself, version of cortex, system status, server status",
    "file": "json, yaml, toml, regex, csv, xml, jq, render template, jinja, find definition, find references, "
    "code search, check syntax, syntax check, syntax error, compare files, compare the files, in the pdf, which page, "
    "my documents, search my files",
    "cron": "schedule, cron, timer, periodic, recurring, every hour, every day, every morning, every evening, "
    "every night, every weekday, each morning, scheduled job, scheduled jobs, scheduled task, scheduled tasks, "
    "delete the job, pause the job, stop the job",
    "reminders": "remind me, set a reminder, my reminders, all reminders, wake me, nudge me, let me forget, "
    "set an alarm, set my alarm, alarm for, my alarms, cancel the alarm, set a timer, timer for, cancel the timer",
    "web_post": "http post, post request, put request, patch request, api call, rest api, call the api, "
    "to the endpoint, send json, webhook, curl, click button, click element, navigate to, web page",
    "agents": "spawn agent, spawn an agent, start an agent, stop the agent, cancel the agent, call off the agent, "
    "your agents, delegate to, remote agent, sub agent, background agent, in the background",
    "coding": "aider, coding agent, coding agents, refactor the code, fix the bug, in the repo, plugin, aether_api, "
    "aether_frontend, aether_container, claude allow, claude directory",
    "notifications": "ocr, e-mail, send email, send an email, send a mail, push notification, notify me, "
    "to my phone, on my phone, talk message, talk room, nextcloud talk, team channel, family chat, in the channel",
    "ha": "home assistant, turn on, turn off, switch on the, switch off the, dim the, lock the, the light, "
    "garage door, front door, play music, ui automation, living room, room temperature, temperature in the, "
    "set the thermostat, too dark in here, too cold in here",
    "aether": "knowledge graph, journal entry, search journal, my journal, my journals, in the journal, dear diary, "
    "lab book, the entry",
    "aether_db": "sql query, run query, run a query, run this query, query the, select from, database table, "
    "database schema, show tables, which tables, what tables, in the table, how many rows, columns of, the view",
    "ae_tasks": "kanban, task board, on the board, my board, aether board, aether tasks",
    "tasks": "shopping list, grocery list, to do list, todo list, my list, my to-do, add to my, need to buy, "
    "mark as done, tick off, cross off, check off, my tasks",
    "scratchpad": "scratchpad, scratch pad, jot down, working note, clear the scratch, note that, note this down, "
    "write this down, make a note, new note, to my note, to my notes, in my notes",
    "notes": "agent notes, your notes, your own notes, private notes, keep in mind that, what do you know about me",
    "session": "last time, earlier conversation, previous conversation, old conversation, what did we, did we talk, "
    "we talked about, we discussed, chat history, you told me, read the session",
    "memory": "remember that, remember this, please remember, commit to memory, do you remember my, do you know my, "
    "what do you know about me, what do you remember, forget that i, forget about my",
    "skills": "my how-to, my how-tos, how-to for, my skills, your skills, which skills, list skills, use the skill",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A category that comes in as a whole: its phrases as words, each with how it was written."""

    name: str
    phrases: tuple[tuple[str, ...], ...]


def groups() -> tuple[str, ...]:
    """The names of the groups of the table, in its order."""
    return tuple(_GROUPS)


@once
def groups_of(snapshot: Snapshot) -> tuple[Group, ...]:
    """The groups of a registry in a fixed order: the table's, then other categories in registry order."""
    found = {name: [text.words(phrase) for phrase in told.split(",")] for name, told in _GROUPS.items()}
    for domain in snapshot.domains:
        said = (text.words(trigger.text) for trigger in domain.triggers)
        found.setdefault(domain.name, []).extend(phrase for phrase in said if len(phrase) > 1)
    return tuple(Group(name=name, phrases=tuple(dict.fromkeys(phrases))) for name, phrases in found.items())


# --- what is scanned ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The texts of the last four messages, and the tools called in them."""

    texts: tuple[str, ...]
    called: tuple[str, ...]


def scan(message: str, past: Sequence[PastTurn], found: Iterable[str]) -> Scan:
    """The last four messages: this one, and before it answers, calls with their results, and what was asked.

    Results are words from outside: they may bring in a group, whose tools still are the permitted ones alone.
    """
    told: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for turn in past[-SCANNED_MESSAGES:]:
        told.append(((turn.user,), ()))
        if turn.called:
            told.append((tuple(cut(each) for each in (*turn.arguments, *turn.results)), turn.called))
        if turn.assistant:
            told.append(((turn.assistant,), ()))
    told = [*told, ((message,), tuple(found))][-SCANNED_MESSAGES:]
    return Scan(
        texts=tuple(each for texts, _ in told for each in texts if each.strip()),
        called=tuple(name for _, names in told for name in names),
    )


def cut(words: str, most: int = SCANNED_CHARACTERS) -> str:
    """The first characters of a text, never a part of one: an accent or a joined emoji stays with its letter."""
    end = min(most, len(words))
    while 0 < end < len(words) and _clings(words[end - 1], words[end]):
        end -= 1
    return words[:end]


def _clings(before: str, after: str) -> bool:
    """Whether the two are parts of one character as people see it."""
    is_flag = "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff"
    is_toned = "\U0001f3fb" <= after <= "\U0001f3ff"
    return category(after).startswith("M") or _JOINER in (before, after) or is_flag or is_toned


def activated(found: Scan, snapshot: Snapshot, homes: Mapping[str, str]) -> dict[str, str]:
    """Group -> why it is active, in table order. `homes`: tool -> category."""
    said = [text.words(each) for each in found.texts]
    called = {homes[name]: name for name in reversed(found.called) if name in homes}
    why: dict[str, str] = {}
    for group in groups_of(snapshot):
        phrase = next((phrase for phrase in group.phrases if any(_holds(words, phrase) for words in said)), None)
        if phrase is not None:
            why[group.name] = f'"{" ".join(phrase)}" was said'
        elif group.name in called:
            why[group.name] = f"{called[group.name]} was called"
    return why


def _holds(said: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(said[at : at + len(part)] == part for at in range(len(said) - len(part) + 1))


# --- capabilities and fixed lists ---------------------------------------------------------------------------------


def is_restricted(role: RoleView, *, is_admin: bool) -> bool:
    """Whether the role names what it may use; one that may use all has no single capability to speak of."""
    return "all" not in role.tools and not (is_admin and "all" in role.admin_tools)


def without_core(entries: Iterable[ToolEntry]) -> tuple[str, ...]:
    """The permitted categories of which no tool is core: granted, and invisible unless their group is active."""
    homes: dict[str, bool] = {}
    for entry in entries:
        homes[entry.category] = homes.get(entry.category, False) or entry.name in CORE
    return tuple(name for name, has_core in homes.items() if not has_core)


def is_fixed(role: RoleView, names: frozenset[str]) -> bool:
    """Whether the role is a fixed list of tools, each written out by its name, as a job's is."""
    told = (*role.tools, *role.admin_tools)
    return bool(told) and all(word in names for word in told)


# --- the stable hash ----------------------------------------------------------------------------------------------


def fingerprint(snapshot: Snapshot, entries: Sequence[ToolEntry]) -> str:
    """A hash over names and schemas in their order: FNV-1a, 64 bits, the same on every machine."""
    prints = _prints(snapshot)
    for entry in entries:
        if entry.name not in prints:
            told = json.dumps([entry.name, entry.full.description, entry.full.parameters], sort_keys=True)
            prints[entry.name] = _fnv(told.encode()).to_bytes(8, "big")
    return f"{_fnv(b''.join(prints[entry.name] for entry in entries)):016x}"


@once
def _prints(snapshot: Snapshot) -> dict[str, bytes]:
    """The hash of each schema of this registry, filled as they are first sent."""
    return {}


def _fnv(data: bytes) -> int:
    """Fowler, Noll, Vo: FNV-1a."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _BITS
    return value
