"""A made-up registry with the names of the shipped tools, for the baselines: their tables speak of those names."""

from typing import Any

from msgspec.structs import replace

from cortex.selection.pipeline import plan
from cortex.selection.types import (
    Domain,
    Example,
    PastTurn,
    PlanInput,
    PlannerMemory,
    RoleView,
    Snapshot,
    ToolPlan,
    Trigger,
)
from tests.selection.made import NOW, entry

NAMES = {
    "ae_tasks": "ae_task_list",
    "aether": "ae_journal_list ae_journal_search ae_journal_entries_list ae_journal_entry_read ae_journal_entry_create "
    "ae_journal_entry_update ae_journal_entry_append ae_journal_entry_prepend ae_journal_entry_disable",
    "aether_db": "ae_db_query ae_db_describe ae_db_show_view",
    "agents": "spawn_agent agent_status agent_cancel",
    "coding": "aider_run aider_status claude_allow_dir",
    "cron": "cron_list cron_add cron_remove cron_toggle",
    "file": "file_read file_list file_write file_diff file_grep file_syntax_check file_stat",
    "git": "git_status git_log git_diff",
    "ha": "ha_get_state ha_get_states ha_call_service",
    "memory": "memory_search memory_add memory_forget",
    "notes": "agent_notes_read agent_notes_write agent_notes_append agent_notes_clear",
    "notifications": "web_push email_send nc_talk_send nc_talk_history",
    "reminders": "reminders_add reminders_list reminders_remove reminders_clear",
    "scratchpad": "scratch_read scratch_write scratch_append scratch_clear",
    "session": "session_read session_search",
    "system": "shell_exec cortex_status cortex_logs cortex_restart cortex_update",
    "tasks": "task_list task_create task_update task_complete",
    "web": "web_search web_read http_fetch",
    "web_post": "http_post",
}
ADMIN = {"shell_exec", "cortex_restart", "cortex_update", "aider_run", "claude_allow_dir"}
WORLD = Snapshot(
    version="world-1",
    entries=(
        *(
            entry(name, category, f"The tool {name.replace('_', ' ')}", ("text",), is_admin=name in ADMIN)
            for category, names in NAMES.items()
            for name in names.split()
        ),
        entry("tools_discover", "meta", "Find a tool", ("query",), is_meta=True, tokens_full=60),
        entry("tool_call", "meta", "Call a tool by name", ("name", "arguments"), is_meta=True, tokens_full=80),
    ),
    domains=tuple(Domain(name=name, summary=f"things of {name}", tokens=8) for name in NAMES),
)
FEW = {"git", "ha", "session", "system", "tasks", "web"}
SOME = Snapshot(
    version="some-1",
    entries=tuple(each for each in WORLD.entries if each.is_meta or each.category in FEW),
    domains=tuple(
        Domain(
            name=each.name,
            summary=each.summary,
            tokens=8,
            triggers=(Trigger(text=f"my {each.name}"),),
            examples=(Example(text=f"do something with {each.name} for me", tools=(NAMES[each.name].split()[0],)),),
        )
        for each in WORLD.domains
        if each.name in FEW
    ),
)
ALL = RoleView(name="admin", tools=("all",))
TOOLS = tuple(each.name for each in WORLD.entries if not each.is_meta)


def wish(recipe: str, message: str, **changes: Any) -> PlanInput:
    """An admin's message under this recipe, in a new conversation unless `changes` say otherwise."""
    given = PlanInput(
        snapshot=WORLD,
        ready=tuple(each.name for each in WORLD.entries),
        role=ALL,
        is_admin=True,
        message=message,
        recipe=recipe,
        now=NOW,
        turn="t1",
        model="m",
    )
    return replace(given, **changes)


def sent(made: ToolPlan) -> list[str]:
    return [item.name for item in made.sent]


def talk(recipe: str, messages: list[str], **changes: Any) -> list[ToolPlan]:
    """The plans of a conversation, each with the memory of the one before and the turns so far."""
    made: list[ToolPlan] = []
    memory = PlannerMemory()
    past: tuple[PastTurn, ...] = ()
    for at, message in enumerate(messages):
        made.append(plan(wish(recipe, message, turn=f"t{at}", memory=memory, past=past, **changes)))
        memory = made[-1].memory
        past = (*past, PastTurn(user=message, assistant="Done."))
    return made


def why(made: ToolPlan, name: str) -> str:
    return next(each.reason for each in made.decisions if each.name == name)
