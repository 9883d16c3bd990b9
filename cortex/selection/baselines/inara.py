"""Keyword categories: which words activate which tools, and the cache of schema blocks. No stage and no gate in here.

Plain `contains` on lower-cased text, as this way has it: "light" is found in "flight". That is measured, not mended.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from cortex.base.messages import ToolSchema
from cortex.selection.types import ToolEntry

BLOCKS_KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Keywords:
    """A category: any of the words in the text activates all of its tools."""

    name: str
    words: tuple[str, ...]
    tools: tuple[str, ...]


def _category(name: str, words: str, tools: str) -> Keywords:
    return Keywords(name=name, words=tuple(word.strip() for word in words.split(",")), tools=tuple(tools.split()))


CATEGORIES = (
    _category(
        "web",
        "search, look up, what is, who is, weather, forecast, temperature, news, find on, google, website, article, "
        "research",
        "web_search web_read http_fetch",
    ),
    _category("web_post", "post to, send to, webhook, trigger webhook", "http_post"),
    _category(
        "file",
        "read file, show file, list file, open file, directory, grep, search in, find in, diff, compare, syntax check",
        "file_read file_list file_write file_diff file_grep file_syntax_check file_stat",
    ),
    _category("git", "git, commit, branch, pulled, merged, repository, repo", "git_status git_log git_diff"),
    _category(
        "system",
        "restart, update, status, logs, deploy, run command, shell, is it running, health",
        "cortex_status cortex_logs cortex_restart cortex_update shell_exec",
    ),
    _category(
        "tasks",
        "task, todo, to-do, to do, add task, create task, pending, what's on my list",
        "task_list task_create task_update task_complete",
    ),
    _category(
        "cron",
        "schedule, cron, every day, every week, recurring, automate, job",
        "cron_list cron_add cron_remove cron_toggle",
    ),
    _category(
        "reminders",
        "remind, reminder, remember, don't forget",
        "reminders_add reminders_list reminders_remove reminders_clear",
    ),
    _category(
        "scratchpad",
        "scratch, scratchpad, working note, jot down, notepad",
        "scratch_read scratch_write scratch_append scratch_clear",
    ),
    _category(
        "ha",
        "home assistant, light, thermostat, turn on, turn off, switch, sensor, temperature in, kitchen, bedroom, "
        "garage",
        "ha_get_state ha_get_states ha_call_service",
    ),
    _category(
        "aether",
        "journal, aether journal, note entry, log entry, search journal, ae_journal",
        "ae_journal_list ae_journal_search ae_journal_entries_list ae_journal_entry_read ae_journal_entry_create "
        "ae_journal_entry_update ae_journal_entry_append ae_journal_entry_prepend ae_journal_entry_disable",
    ),
    _category(
        "aether_db",
        "database, query, sql, select, db, table, schema, maria, run query",
        "ae_db_query ae_db_describe ae_db_show_view",
    ),
    _category(
        "notifications",
        "notify, push notification, send email, email, talk message, nextcloud",
        "web_push email_send nc_talk_send nc_talk_history",
    ),
    _category("agents", "spawn, sub-agent, delegate, spawn agent", "spawn_agent"),
    _category(
        "notes",
        "agent notes, private notes, my notes, agent_notes",
        "agent_notes_read agent_notes_write agent_notes_append agent_notes_clear",
    ),
    _category(
        "session",
        "remember, session, history, last time, what did we, earlier, yesterday, last week, previously",
        "session_read session_search",
    ),
    _category("ae_tasks", "ae task, kanban, board, ae_task", "ae_task_list"),
    _category("claude", "claude allow, claude directory", "claude_allow_dir"),
)


def activated(message: str, last_answer: str) -> dict[str, str]:
    """The categories that the user's message and the assistant's last turn activate, each with its first word."""
    said = f"{message}\n{last_answer}".lower()
    found = {each.name: next((word for word in each.words if word in said), "") for each in CATEGORIES}
    return {name: word for name, word in found.items() if word}


def homes() -> dict[str, tuple[str, ...]]:
    """Tool -> the categories that bring it."""
    found: dict[str, tuple[str, ...]] = {}
    for each in CATEGORIES:
        for name in each.tools:
            found[name] = (*found.get(name, ()), each.name)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockKey:
    """What a block depends on: role, sorted tools, risk (rights and channel), and the registry that the words are of.

    `entries` ride along for the one build and are no part of the key.
    """

    version: str
    role: str
    tools: tuple[str, ...]
    risk: tuple[str, ...]
    entries: tuple[ToolEntry, ...] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The schemas of a set of tools, and what they take from the context."""

    schemas: tuple[ToolSchema, ...]
    tokens: int


@lru_cache(maxsize=BLOCKS_KEPT)
def block(key: BlockKey) -> Block:
    """The block of this key, built at its first use and kept (`block.cache_info().misses` counts the builds)."""
    schemas = tuple(entry.schema("full") for entry in key.entries)
    return Block(schemas=schemas, tokens=sum(entry.cost("full") for entry in key.entries))
