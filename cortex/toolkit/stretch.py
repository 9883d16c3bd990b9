"""How much of a text a tool's result holds, and how the model reads on. Pure; used by the tools that read texts."""

RESULT_CHARACTERS = 6_000


def stretch(text: str, offset: int, way: str) -> str:
    """The text from character `offset` on; where more follows, it ends with the offset to go on at, by `way`."""
    start = min(max(offset, 0), len(text))
    shown = text[start : start + RESULT_CHARACTERS]
    rest = len(text) - start - len(shown)
    return shown + (f"\n[{rest} more characters: {way} with offset={start + len(shown)}]" if rest else "")


def beginning(text: str, hint: str) -> str:
    """The beginning of the text; where more follows, it ends with how much and the hint."""
    left = len(text) - RESULT_CHARACTERS
    return text if left <= 0 else f"{text[:RESULT_CHARACTERS]}\n[{left} more characters: {hint}]"
