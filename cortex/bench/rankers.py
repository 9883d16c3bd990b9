"""How each recipe ranks tools for a query: what `tools_discover` answers under it. One that cannot is not here."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from cortex.selection import discover
from cortex.selection.discover import Hit
from cortex.selection.types import Snapshot

Rank = Callable[[str, Snapshot, Sequence[str], int], tuple[Hit, ...]]

RANKERS: Mapping[str, Rank] = MappingProxyType({"cortex": discover.rank})
