"""What is worked out of a registry snapshot, or of many names, once for its content, and kept. No score in here."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from cortex.selection.types import Snapshot

T = TypeVar("T")
KEPT = 4


class SnapshotKey:
    """A snapshot as a cache key: equal when the versions are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def __hash__(self) -> int:
        return hash(self.snapshot.version)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SnapshotKey) and other.snapshot.version == self.snapshot.version


class NamesKey:
    """Names as a cache key: hashed by how many there are and two of them, since to hash 10,000 takes half a plan."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __hash__(self) -> int:
        return hash((len(self.names), self.names[:1], self.names[-1:]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamesKey) and (self.names is other.names or self.names == other.names)


def once(build: Callable[[Snapshot], T]) -> Callable[[Snapshot], T]:
    """`build`, run at the first use of a version; what came of the last few is kept."""

    @lru_cache(maxsize=KEPT)
    def kept(key: SnapshotKey) -> T:
        return build(key.snapshot)

    return lambda snapshot: kept(SnapshotKey(snapshot))
