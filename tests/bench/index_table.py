"""Makes `selection/shipped_index.bin` of the tools and utterances that ship, for `make train`: each time the same."""

from cortex.bench.ground import DEFAULT_PROFILE
from cortex.commands.bench import ground
from cortex.selection import packed, semantic_index, shipped_index
from cortex.selection.index import index_of


def made() -> shipped_index.Content:
    """What the file should hold."""
    snapshot = ground("admin", DEFAULT_PROFILE).snapshot
    index = index_of(snapshot)
    curves = semantic_index.fitted(snapshot, index.learned, "", index.tools.words)
    return shipped_index.made(snapshot, index.tools, index.learned, curves)


def main() -> None:
    """Write it."""
    shipped_index.SHIPPED.write_bytes(packed.to_bytes(*made()))


if __name__ == "__main__":
    main()
