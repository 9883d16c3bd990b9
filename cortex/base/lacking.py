"""What a message wants and cannot have here: the note that the model reads, and whether an answer says so.

The note names a system, and an answer that needed it names it too; the name is the same in every language.
"""

import re

PERHAPS = "setup_perhaps"  # in a receipt: what may be meant, which the model is told nothing of
_WAY = "If you cannot answer without it, name it; else leave it out."
_NOTE = re.compile(rf"^\((.+ is .+\.) {re.escape(_WAY)}\)$", re.MULTILINE)


def note_on(title: str, state: str) -> str:
    """The line for the model; `state`: what follows "is", such as "not set up here"."""
    return f"({title} is {state}. {_WAY})"


def noted_in(text: str) -> str:
    """The sentence of the note that stands in what a request carries behind a message; "" where there is none."""
    found = _NOTE.search(text)
    return found[1] if found else ""


def is_named(title: str, answer: str) -> bool:
    """Tell whether the answer names the system as the note did: "E-mail", and not the word for any e-mail."""
    return re.search(rf"(?<!\w){re.escape(title)}(?!\w)", answer) is not None
