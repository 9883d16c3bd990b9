"""How many rounds a turn may take, and which setting says so."""

from cortex.base.errors import UserError
from cortex.base.model import ModelEntry
from cortex.base.numbers import whole_number
from cortex.base.role import Role
from cortex.base.settings import MAX_ROUNDS_CAP


def max_rounds(setting: int, entry: ModelEntry, role: Role, own: int | None, job_id: str = "") -> tuple[int, str]:
    """The rounds in force and where they come from: setting -> model -> role -> conversation or job; the last wins."""
    levels = (
        ("CORTEX_MAX_ROUNDS", setting),
        (f"model {entry.name}", entry.max_rounds),
        (f"role {role.name}", role.max_rounds),
        ("this job" if job_id else "this conversation", own),
    )
    origin, value = [(name, value) for name, value in levels if value is not None][-1]
    return min(max(value, 1), MAX_ROUNDS_CAP), origin


def typed_rounds(text: str) -> int | None:
    """The rounds as a form has them, None for an empty field; UserError for anything but a number in its limits."""
    if not text.strip():
        return None
    number = whole_number(text)
    if number is None or not 1 <= number <= MAX_ROUNDS_CAP:
        raise UserError(f"Rounds are a number from 1 to {MAX_ROUNDS_CAP}.", field="max_rounds")
    return number
