"""How many rounds a turn may take, and which setting says so."""

from cortex.base.model import ModelEntry
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
