"""Who is acting: the few facts about an account that rules need. The account itself lives in `storage/accounts.py`."""

from typing import Literal

from msgspec import Struct

from cortex.base.errors import NotAllowed

Rank = Literal["admin", "member"]


class User(Struct, frozen=True, kw_only=True):
    """An account as the rest of the server sees it. `time_zone` is an IANA name."""

    id: str
    name: str
    rank: Rank
    time_zone: str = "UTC"

    @property
    def is_admin(self) -> bool:
        """Tell whether the rank is admin."""
        return self.rank == "admin"

    def must_be_admin(self, to: str) -> None:
        """NotAllowed for everybody else, who reads what only an admin can do."""
        if not self.is_admin:
            raise NotAllowed(f"Only an admin can {to}.")
