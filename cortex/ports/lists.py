"""The signal of task lists: open pages of all who see a list are told that it changed."""

from typing import Protocol


class ListSignal(Protocol):
    """The signal as one user gives it, who changed something."""

    async def tell_readers(self, *places: tuple[str, str], is_shared: bool = True) -> None:
        """Something on these lists (owner's id, name) is committed: let the open pages of all who see them look.

        is_shared: False where the caller has just seen that nobody else does; that spares looking who they are.
        """
        ...
