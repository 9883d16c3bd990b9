"""A made-up registry of nine tools, and inputs over it: small enough to read, wide enough for every rule."""

from typing import Any

from msgspec.structs import replace

from cortex.base.messages import ToolSchema
from cortex.base.model import Profile
from cortex.selection.types import Domain, Example, PlanInput, RoleView, Snapshot, ToolEntry, Trigger

CACHED = Profile(caches=True, read_factor=0.1, write_factor=1.25, minimum_tokens=1024, life_s=300, late_tools="rewrite")
BRIDGED = replace(CACHED, late_tools="bridge")
WEAK = replace(CACHED, late_tools="stubs", strength="weak")
NOW = "2026-11-21T10:00:00+00:00"
ROLE = RoleView(name="house", tools=("lamps", "tasks", "repos"), admin_tools=("shell",))


def entry(name: str, category: str, summary: str, arguments: tuple[str, ...] = (), **flags: Any) -> ToolEntry:
    properties = {argument: {"type": "string", "description": f"The {argument}."} for argument in arguments}
    full = ToolSchema(name=name, description=summary, parameters={"type": "object", "properties": properties})
    bare = {argument: {"type": "string"} for argument in arguments}
    stub = ToolSchema(name=name, description=summary, parameters={"type": "object", "properties": bare})
    line = f"{name}: {summary}"
    costs = {"tokens_full": 140, "tokens_stub": 70, "tokens_line": 12, "tokens_name": 4, **flags}
    return ToolEntry(name=name, category=category, summary=summary, line=line, full=full, stub=stub, **costs)


HOUSE = Snapshot(
    version="house-1",
    entries=(
        entry("lamp_set", "lamps", "Turn a lamp on or off", ("room", "state")),
        entry("lamp_get", "lamps", "Say whether a lamp is on", ("room",)),
        entry("repo_log", "repos", "Show the commits of a repository", ("path",)),
        entry("repo_diff", "repos", "Show what changed in a repository", ("path",)),
        entry("shell_run", "shell", "Run a command", ("command",), is_admin=True),
        entry("task_add", "tasks", "Add a task to a list", ("title", "list_name")),
        entry("task_show", "tasks", "Show the tasks of a list", ("list_name",)),
        entry("tools_discover", "meta", "Find a tool", ("query",), is_meta=True, tokens_full=60),
        entry("tool_call", "meta", "Call a tool by name", ("name", "arguments"), is_meta=True, tokens_full=80),
    ),
    domains=(
        Domain(
            name="lamps",
            summary="lamps in the house",
            tokens=8,
            triggers=(Trigger(text="light", tools=("lamp_set",)), Trigger(text="lights", tools=("lamp_set",))),
            examples=(
                Example(text="turn off the kitchen lights", tools=("lamp_set",), is_own=True),
                Example(text="it's too dark in here", tools=("lamp_set",), is_own=True),
                Example(text="is the lamp in the hall still burning", tools=("lamp_get",), is_own=True),
            ),
        ),
        Domain(
            name="repos",
            summary="repositories",
            tokens=5,
            triggers=(Trigger(text="repo"), Trigger(text="commit", tools=("repo_log",))),
            examples=(Example(text="what did I commit yesterday", tools=("repo_log",), is_own=True),),
        ),
        Domain(
            name="shell",
            summary="commands",
            tokens=4,
            examples=(Example(text="run df in the shell", tools=("shell_run",), is_own=True),),
        ),
        Domain(
            name="tasks",
            summary="to-do lists",
            tokens=6,
            triggers=(Trigger(text="shopping list"), Trigger(text="todo")),
            examples=(
                Example(text="add milk and eggs to my shopping list", tools=("task_add",), is_own=True),
                Example(text="what's on my list", tools=("task_show",), is_own=True),
            ),
        ),
    ),
)


def asked(message: str, **changes: Any) -> PlanInput:
    given = PlanInput(
        snapshot=HOUSE,
        ready=tuple(item.name for item in HOUSE.entries),
        role=ROLE,
        is_admin=False,
        message=message,
        now=NOW,
        turn="t1",
        model="m",
    )
    return replace(given, **changes)


def business(names: list[str]) -> list[str]:
    return [name for name in names if name not in ("tools_discover", "tool_call")]
