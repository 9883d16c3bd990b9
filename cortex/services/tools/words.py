"""Words that an admin edits: phrases and examples of a category, one a line; the description of a tool.

Pure. `services/tools/settings.py` stores what this reads; `services/workshop/tool_trials.py` shows its effect.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.hidden import holds_hiding
from cortex.selection.types import Domain, Example, Trigger
from cortex.selection.words import text
from cortex.services.tools.edits import WordEdits
from cortex.storage.tool_settings import Kind, ToolWordRow
from cortex.toolkit.registry import Registry
from cortex.toolkit.schema import SUMMARY_CHARACTERS

CHARACTERS_MAX = 300
LINES_MAX = 400
DESCRIPTION_MAX = 1_000
BACK = "To use the shipped text, choose Restore default."
_LINE = re.compile(r"^(?P<text>.*?)\s*(?:\[(?P<tools>[^\[\]]*)\])?\s*$")


class WordsText(Struct, frozen=True, kw_only=True):
    """The three texts of the form, one phrase or example a line."""

    phrases: str = ""
    examples: str = ""
    no_examples: str = ""


class Rival(Struct, frozen=True, kw_only=True):
    """A phrase that other categories have too."""

    phrase: str
    categories: tuple[str, ...]


def typed_of(words: Sequence[ToolWordRow]) -> WordsText:
    """Return what is stored, as the form shows it."""

    def lines(kind: Kind, *, is_left_out: bool) -> str:
        return "\n".join(line(word) for word in words if word.kind == kind and word.is_left_out == is_left_out)

    return WordsText(
        phrases=lines("phrase", is_left_out=False),
        examples=lines("example", is_left_out=False),
        no_examples=lines("example", is_left_out=True),
    )


def line(word: ToolWordRow) -> str:
    """A word as it is typed."""
    return f"{word.text} [{' '.join(word.tools)}]" if word.tools else word.text


def read(registry: Registry, category: str, typed: WordsText, default: str = "") -> tuple[ToolWordRow, ...]:
    """Return what the form says, each wording once. `default`: the tool meant where a line names none.

    UserError with the field for a line that names an unknown tool, says nothing, or leaves out what does not ship.
    """
    shipped = registry.categories[category]
    examples = shipped_examples(registry, category)
    own = {tool.name for tool in shipped.tools}
    made = (
        *_added("phrase", category, typed.phrases, own, default),
        *_added("example", category, typed.examples, set(registry.tools), default),
        *_left_out(category, typed.no_examples, examples),
    )
    known = examples - {word.text_key for word in made if word.is_left_out}
    for word in made:
        if word.kind == "example" and not word.is_left_out and word.text_key in known:
            raise UserError(
                f"{word.text!r} is shipped already. To change its tools, exclude the shipped one too.",
                field="examples",
            )
    return made


def shipped_examples(registry: Registry, category: str) -> set[str]:
    """The examples that the category ships, as they are compared."""
    return {text.normal(said) for said, _ in registry.categories[category].examples}


def read_description(typed: str) -> str:
    """A description as it is kept: lines without outer blanks, no blank ones. UserError for one that cannot be sent."""
    lines = [line for line in (" ".join(row.split()) for row in typed.splitlines()) if line]
    made = "\n".join(lines)
    if not text.words(made):
        raise UserError(f"Say when to use the tool. {BACK}", field="description")
    if len(lines[0]) >= SUMMARY_CHARACTERS:
        raise UserError(
            f"The first line has {len(lines[0])} characters; the limit is {SUMMARY_CHARACTERS - 1}, because it "
            "is the short form of the tool. The rest goes on the next line.",
            field="description",
        )
    if len(made) > DESCRIPTION_MAX:
        raise UserError(
            f"That is {len(made):,} characters; at most {DESCRIPTION_MAX:,} fit, and each costs in every round.",
            field="description",
        )
    if holds_hiding(made):
        raise UserError("It contains invisible characters. Type the text again.", field="description")
    return made


def words_of(words: Iterable[ToolWordRow]) -> Mapping[str, WordEdits]:
    """Stored words as selection takes them, by category."""
    by_category: dict[str, list[ToolWordRow]] = {}
    for word in words:
        by_category.setdefault(word.category, []).append(word)
    return {category: _words(found) for category, found in by_category.items()}


def rivals(domains: Sequence[Domain], category: str) -> tuple[Rival, ...]:
    """Phrases of the category that others have as well, with whose they are, in the category's order."""
    others: dict[tuple[str, ...], list[str]] = {}
    for domain in domains:
        if domain.name != category:
            for trigger in domain.triggers:
                others.setdefault(text.words(trigger.text), []).append(domain.name)
    own = next((domain.triggers for domain in domains if domain.name == category), ())
    found = {trigger.text: others.get(text.words(trigger.text), []) for trigger in own}
    return tuple(
        Rival(phrase=phrase, categories=tuple(dict.fromkeys(names))) for phrase, names in found.items() if names
    )


def _words(found: Sequence[ToolWordRow]) -> WordEdits:
    added = [word for word in found if not word.is_left_out]
    return WordEdits(
        phrases=tuple(Trigger(text=w.text, tools=w.tools) for w in added if w.kind == "phrase"),
        examples=tuple(Example(text=w.text, tools=w.tools, is_own=True) for w in added if w.kind == "example"),
        no_examples=tuple(word.text_key for word in found if word.is_left_out),
    )


def _added(kind: Kind, category: str, typed: str, own: set[str], default: str) -> list[ToolWordRow]:
    """The lines as words that this server adds."""
    field = f"{kind}s"
    made: dict[str, ToolWordRow] = {}
    for said, names in _lines(typed, field):
        tools = names or ((default,) if default else ())
        unknown = [name for name in tools if name not in own]
        if unknown:
            where = f"in {category}" if kind == "phrase" else "here"
            raise UserError(f"There is no tool {unknown[0]!r} {where}.", field=field)
        if kind == "example" and not tools:
            raise UserError(f"Add in brackets which tool {said!r} needs.", field=field)
        key = text.normal(said)
        made[key] = ToolWordRow(category=category, kind=kind, text=said, text_key=key, tools=tools)
    return list(made.values())


def _left_out(category: str, typed: str, shipped: set[str]) -> list[ToolWordRow]:
    """The lines as shipped examples that this server leaves out."""
    made: dict[str, ToolWordRow] = {}
    for said, _ in _lines(typed, "no_examples"):
        key = text.normal(said)
        if key not in shipped:
            raise UserError(f"No shipped example of {category} is {said!r}.", field="no_examples")
        made[key] = ToolWordRow(category=category, kind="example", text=said, text_key=key, is_left_out=True)
    return list(made.values())


def _lines(typed: str, field: str) -> list[tuple[str, tuple[str, ...]]]:
    """Text and tools of each line that is not blank."""
    rows = [row.strip() for row in typed.splitlines() if row.strip()]
    if len(rows) > LINES_MAX:
        raise UserError(f"That is {len(rows)} lines; the limit is {LINES_MAX}.", field=field)
    found = []
    for row in rows:
        match = _LINE.match(row)
        said = " ".join((match["text"] if match else row).split())
        names = tuple((match["tools"] or "").replace(",", " ").split()) if match else ()
        if not text.words(said):
            raise UserError(f"{row[:60]!r} contains no word.", field=field)
        if len(said) > CHARACTERS_MAX:
            raise UserError(f"{said[:60]!r} is too long: at most {CHARACTERS_MAX} characters.", field=field)
        found.append((said, names))
    return found
