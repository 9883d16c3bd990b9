"""Where a person's notes are in their home, and what one may be called."""

NOTES = "notes"
SCRATCHPAD = "scratchpad.md"
SUFFIX = ".md"
NAME_CHARS_MAX = 80


def note_name(words: str) -> str:
    """The name without needless spaces. ValueError, in words for a person, when a note cannot be called so."""
    name = " ".join(words.split())
    if not name or len(name) > NAME_CHARS_MAX:
        raise ValueError(f"A note needs a name of 1 to {NAME_CHARS_MAX} characters.")
    if "/" in name or "\\" in name or name.startswith("."):
        raise ValueError("A note's name cannot hold a slash or begin with a dot.")
    return name


def note_path(name: str) -> str:
    """The note's file in the home."""
    return f"{NOTES}/{name}{SUFFIX}"
