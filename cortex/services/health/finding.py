"""One check of the doctor, and how it stands."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["good", "warn", "bad", "unset"]  # unset: not set up, and nobody has to


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: its name, how it stands, what was seen, and what to do when that is not good."""

    name: str
    state: State
    text: str
    mend: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)
