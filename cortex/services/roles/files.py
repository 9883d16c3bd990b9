"""From the keys of a role file (or a preference) to the fields of a `Role`. Every slip is named with file and key."""

from collections.abc import Mapping
from typing import Any, get_args

from cortex.base.errors import UserError
from cortex.base.front_matter import Value, bare, front_matter
from cortex.base.role import Role, ToolMode
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.selection.recipes import RECIPES

LISTS = ("tools", "admin_tools", "core", "models")
NUMBERS = ("max_rounds", "budget_tokens", "tool_budget_tokens")
KEYS = (*LISTS, *NUMBERS, "budget_usd", "mode", "recipe", "admin_only", "prompt")


def fields_of(text: str, where: str) -> dict[str, Any]:
    """The fields that a role file sets, its text as `prompt`. Any: each field has its own type, checked here."""
    keys, body = front_matter(text, where)
    found = checked(keys, where)
    return {**found, "prompt": body} if body else found


def checked(keys: Mapping[str, Value | list[str]], where: str) -> dict[str, Any]:
    """The fields of a `Role` that these keys set; an empty value sets nothing. UserError names file and key."""
    unknown = sorted(set(keys) - set(KEYS))
    if unknown:
        raise UserError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(KEYS)}.")
    found: dict[str, Any] = {}
    for key, value in keys.items():
        if value is not None:
            found["is_admin_only" if key == "admin_only" else key] = _field(key, value, where)
    return found


def written(role: Role) -> str:
    """The role as a file that says all of it, so that `fields_of` reads the same role again."""
    lines = [f"tools: {_list(role.tools)}"]
    lines += [f"{key}: {_list(words)}" for key in ("admin_tools", "core", "models") if (words := getattr(role, key))]
    lines += [f"mode: {role.mode}", f"recipe: {role.recipe}"]
    numbers = ((key, getattr(role, key)) for key in (*NUMBERS, "budget_usd"))
    lines += [f"{key}: {number}" for key, number in numbers if number is not None]
    lines += ["admin_only: true"] if role.is_admin_only else []
    return "\n".join(["---", *lines, "---", role.prompt.strip(), ""])


def _list(words: tuple[str, ...]) -> str:
    return "all" if words == ("all",) else f"[{', '.join(map(bare, words))}]" if words else "false"


def _field(key: str, value: Value | list[str], where: str) -> Any:
    if key in LISTS:
        return _names(key, value, where)
    if key in NUMBERS:
        return _number(key, value, where)
    if key == "budget_usd":
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{where}: {key!r} must be a number of dollars.")
        return float(value)
    if key == "admin_only":
        if not isinstance(value, bool):
            raise UserError(f"{where}: {key!r} must be true or false.")
        return value
    if key == "recipe" and value not in RECIPES:
        raise UserError(f"{where}: {key!r} must be one of {', '.join(sorted(RECIPES))}.")
    if not isinstance(value, str) or (key == "mode" and value not in get_args(ToolMode)):
        told = f"one of {', '.join(get_args(ToolMode))}" if key == "mode" else "text"
        raise UserError(f"{where}: {key!r} must be {told}.")
    return value


def _names(key: str, value: Value | list[str], where: str) -> tuple[str, ...]:
    """A list; `false` = none; `all` must be written out."""
    if value is False:
        return ()
    if value == "all" and key in ("tools", "admin_tools"):
        return ("all",)
    if isinstance(value, tuple | list) and all(isinstance(item, str) and item for item in value):
        return tuple(value)
    raise UserError(
        f"{where}: {key!r} must be a list such as [web, tasks], false{' or all' if 'tools' in key else ''}."
    )


def _number(key: str, value: Value | list[str], where: str) -> int:
    highest = MAX_ROUNDS_CAP if key == "max_rounds" else 100_000_000
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= highest:
        raise UserError(f"{where}: {key!r} must be a whole number from 1 to {highest}.")
    return value
