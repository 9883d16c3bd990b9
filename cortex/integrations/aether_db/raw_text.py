"""What is refused in a statement's text before it is parsed: what the server reads otherwise than the parser does."""

from cortex.base.errors import ToolFailed

STATEMENT_CHARACTERS = 8_000
QUOTES = "'\"`"
EXECUTABLE = ("/*!", "/*M!", "/*m!")


def check_text(text: str) -> None:
    """ToolFailed for text that is too long, or that holds a comment which the server would run or read as code."""
    if not 0 < len(text) <= STATEMENT_CHARACTERS:
        raise ToolFailed(f"A statement has 1 to {STATEMENT_CHARACTERS} characters.")
    if "\0" in text:
        raise ToolFailed("The statement holds a zero character, which is refused: leave it out.")
    place = 0
    while place < len(text):
        place = _after(text, place)


def _after(text: str, place: int) -> int:
    """The place behind the literal, comment or sign that begins here."""
    if text[place] in QUOTES:
        return _after_literal(text, place)
    if text.startswith(EXECUTABLE, place):
        raise ToolFailed("The server executes /*! */ comments, so they are refused: leave the comment out.")
    if text.startswith("/*+", place):
        raise ToolFailed("Optimizer hints (/*+ */) are refused, they can lift limits: leave the hint out.")
    if text.startswith("/*", place):
        end = text.find("*/", place + 2)
        return len(text) if end < 0 else end + 2
    if text.startswith("--", place):
        if text[place + 2 : place + 3].strip():
            raise ToolFailed("'--' without a space behind it is refused, it is read in two ways: write '- -' or '-- '.")
        return _line_end(text, place)
    return _line_end(text, place) if text[place] == "#" else place + 1


def _after_literal(text: str, place: int) -> int:
    quote, at = text[place], place + 1
    while at < len(text):
        if text[at] == "\\" and quote != "`":
            at += 2
        elif text[at] == quote:
            return at + 1  # a doubled quote begins the next literal, which ends where this one does
        else:
            at += 1
    return at


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end
