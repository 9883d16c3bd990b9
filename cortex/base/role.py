"""A role: what an orchestrator may use and how it speaks. Read from one Markdown file by `services/roles/roles.py`."""

from typing import Literal

from msgspec import Struct

ToolMode = Literal["auto", "chat", "all"]
# maker: a job whose owner lets it make and remove jobs; result: an answer to what a background agent found;
# api: another program asks, with a token
Channel = Literal["chat", "cron", "maker", "agent", "result", "api"]
BY_TOKEN: frozenset[Channel] = frozenset({"api", "result"})  # so may a turn have come that a token bounds


class Role(Struct, frozen=True, kw_only=True):
    """The role in force. `tools`: categories or tool names; `("all",)` = everything, `()` = none.

    `admin_tools` are added for an admin's account. `models` names entries of the user's model registry, in the
    order they are tried; empty = the user's default chain. None = not set on this level.

    `within`: what bounds `tools`, None = nothing (a job's own list: what its owner could have in a chat). `lacks`:
    names that they never grant, in a job and in whatever it starts.
    """

    name: str
    prompt: str
    tools: tuple[str, ...] = ()
    admin_tools: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    mode: ToolMode = "auto"
    models: tuple[str, ...] = ()
    max_rounds: int | None = None
    recipe: str = "cortex"
    budget_tokens: int | None = None
    budget_usd: float | None = None
    tool_budget_tokens: int | None = None
    is_admin_only: bool = False
    within: tuple[str, ...] | None = None
    lacks: tuple[str, ...] = ()


class RoleView(Struct, frozen=True, kw_only=True):
    """The part of a role that the choice of tools needs; `budget_tokens` is its `tool_budget_tokens`."""

    name: str
    tools: tuple[str, ...] = ()
    admin_tools: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    budget_tokens: int | None = None
    is_admin_only: bool = False
    within: tuple[str, ...] | None = None
    lacks: tuple[str, ...] = ()
