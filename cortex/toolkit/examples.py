"""A compact way to write a category's EXAMPLES: what people say, and the tools that it wants."""

Example = tuple[str, tuple[str, ...]]


def said(tools: str, words: str) -> tuple[Example, ...]:
    """The utterances in `words`, parted by "|" or line ends, each wanting `tools` (names parted by blanks)."""
    names = tuple(tools.split())
    parts = (" ".join(part.split()) for line in words.splitlines() for part in line.split("|"))
    return tuple((part, names) for part in parts if part)
