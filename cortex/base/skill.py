"""A skill: a short how-to file of one user, `skills/<name>.md` in their home; its front matter says when it is wanted.

Pure: text in, value out. Services read the files, selection shows the titles that fit, `skill_read` gives the body.
"""

from collections.abc import Mapping

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.front_matter import Words, legacy, simple, split

FOLDER = "skills"
SUFFIX = ".md"
SKILLS_MAX = 200
TEXT_CHARS_MAX = 8_000
TITLE_CHARS_MAX = 80
DESCRIPTION_CHARS_MAX = 1_024  # as the form of Agent Skills allows
PHRASES_MAX = 20
PHRASE_CHARS_MAX = 80
KEYS = ("title", "description", "phrases", "tools")


class Skill(Struct, frozen=True, kw_only=True):
    """A skill as it is known before it is read. `name`: its file without the ending.

    phrases: words that call for it. tools: tools that its steps use. is_tainted: it holds words from outside.
    """

    name: str
    title: str
    description: str
    phrases: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    is_tainted: bool = False


class SkillFit(Struct, frozen=True, kw_only=True):
    """A skill's fit to a message, 0 to 1, and why in words for the person."""

    name: str
    title: str
    description: str
    score: float
    reason: str


def path_of(name: str) -> str:
    """Where the skill of this name stands in its user's home."""
    return f"{FOLDER}/{name}{SUFFIX}"


def skill_of(
    name: str, text: str, *, keys: Mapping[str, Words] | None = None, is_tainted: bool = False
) -> tuple[Skill, str]:
    """The skill that a file's text describes, and its body. UserError names file, line or key of the first slip.

    `keys`: what its front matter says, where that was read in the whole of YAML (`needs_yaml`).
    """
    where = path_of(name)
    if len(text) > TEXT_CHARS_MAX:
        raise UserError(f"{where}: a skill has at most {TEXT_CHARS_MAX:,} characters; this has {len(text):,}.")
    head, body = split(text, where)
    if keys is None and head is not None:
        found = simple(head)
        keys = legacy(head, where) if found is None else found
    if not keys:
        raise UserError(f"{where}: it must begin with ---, a title, a description and --- again, each on its line.")
    unknown = sorted(keys.keys() - set(KEYS))
    if unknown:
        raise UserError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(KEYS)}.")
    if not body.strip():
        raise UserError(f"{where}: the text below the second --- is empty; the instructions go there.")
    phrases = _list(keys, "phrases", where)
    if len(phrases) > PHRASES_MAX or any(len(phrase) > PHRASE_CHARS_MAX for phrase in phrases):
        raise UserError(f"{where}: 'phrases' holds at most {PHRASES_MAX}, of {PHRASE_CHARS_MAX} characters each.")
    made = Skill(
        name=name,
        title=_line(keys, "title", TITLE_CHARS_MAX, where),
        description=_line(keys, "description", DESCRIPTION_CHARS_MAX, where),
        phrases=phrases,
        tools=_list(keys, "tools", where),
        is_tainted=is_tainted,
    )
    return made, body


def needs_yaml(name: str, text: str) -> str:
    """The front matter, where it is not in the form that is read here; "" for all others, also the broken ones."""
    if len(text) > TEXT_CHARS_MAX:
        return ""
    try:
        head, _ = split(text, path_of(name))
    except UserError:
        return ""
    return head if head is not None and simple(head) is None else ""


def on_a_line(text: str) -> str:
    """A text of somebody's as it stands in a line of ours."""
    return " ".join(text.split())


def reading(skill: Skill, body: str) -> str:
    """Return what a model gets that reads it."""
    return f"# {on_a_line(skill.title)}\n\n{body}"


def _line(keys: Mapping[str, Words], key: str, longest: int, where: str) -> str:
    """A key's text as it came; UserError when it is missing, no text or too long."""
    value = keys.get(key)
    if value is None or value == "":
        raise UserError(f"{where}: {key!r} is missing; write `{key}: ...` between the two ---.")
    if not isinstance(value, str):
        raise UserError(f"{where}: {key!r} must be text; put it into quotes.")
    if not value.strip() or len(value) > longest:
        raise UserError(f"{where}: {key!r} has 1 to {longest} characters.")
    return str(value)


def _list(keys: Mapping[str, Words], key: str, where: str) -> tuple[str, ...]:
    """A key's list; one bare text is a list of one."""
    value = keys.get(key)
    if value is None or value == "":
        return ()
    items = value if isinstance(value, tuple) else (value,)
    if not all(item.strip() for item in items):
        raise UserError(f"{where}: {key!r} must be a list such as [one, two].")
    return tuple(map(str, items))
