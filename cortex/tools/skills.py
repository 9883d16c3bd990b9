"""The user's skills: short how-to files whose titles are shown when they fit; here their bodies are read.

A skill is an instruction that the user wrote for the assistant, as a persona is: no private data, and not tainted
unless a tool wrote it from outside words.
"""

import re
from collections.abc import Sequence

from cortex.base.errors import ToolFailed
from cortex.base.skill import Skill, on_a_line, reading
from cortex.ports.foreign import FrontMatters
from cortex.storage.home import Home
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.skills import SkillFile, read_skills
from cortex.toolkit.spec import Output

SUMMARY = "the user's own how-tos (skills): list, read"
PREFIXES = ("skill_",)
NEEDS = ("Home", "Preferences", "FrontMatters")
ROLES = {"orchestrator": ("skills",), "coder": ("skills",), "research": ("skills",)}
TESTED = "real folders and files"
SHOWN = 40
NAMED = 12
TELLING_LETTERS = 4
NONE = "The user has written no skill yet; the Skills page is for that."


@tool(words="Look at the skills", effect="read")
async def skill_list(ctx: Ctx) -> Output:
    """List the how-tos (skills) that the user wrote for you."""
    files = await read_skills(ctx.use(Home), ctx.use(PreferencesRepository), ctx.use(FrontMatters))
    usable = [one.skill for one in files if one.skill is not None]
    lines = [_line(one) for one in usable[:SHOWN]] or [NONE]
    if len(usable) > SHOWN:
        lines.append(f"... and {len(usable) - SHOWN} more: {', '.join(one.name for one in usable[SHOWN:])[:2_000]}")
    if len(usable) < len(files):
        lines.append(f"{len(files) - len(usable)} more cannot be used; the Skills page says why.")
    return Output(text="\n".join(lines), is_tainted=any(one.is_tainted for one in usable))


@tool(words="Read the skill {name}", effect="read")
async def skill_read(ctx: Ctx, name: str) -> Output:
    """Read one of the user's how-tos (skills), then work by it.

    Args:
        name: Its name as listed.
    """
    file = _meant(await read_skills(ctx.use(Home), ctx.use(PreferencesRepository), ctx.use(FrontMatters)), name)
    if file.skill is None:
        raise ToolFailed(f"This skill cannot be used until the user corrects its file: {file.error}")
    found = () if file.is_tainted else file.skill.tools
    return Output(text=reading(file.skill, file.body), is_tainted=file.is_tainted, found=found)


def _meant(files: Sequence[SkillFile], wanted: str) -> SkillFile:
    """The one skill that is meant, by name, title, or words of them; ToolFailed names those there are."""
    key = " ".join(wanted.casefold().strip(" `\"'").removesuffix(".md").split())
    said = _words(key)
    ways = (
        [one for one in files if one.name.casefold() == key],
        [one for one in files if one.skill is not None and on_a_line(one.skill.title.casefold()) == key],
        [one for one in files if said and (said <= _known(one) or _words(one.name) <= said)],
        [one for one in files if any(len(word) >= TELLING_LETTERS for word in said & _known(one))],
    )
    sure = next((one for one in ways if one), [])
    if len(sure) == 1:
        return sure[0]
    near = sure or files
    if not near:
        raise ToolFailed(NONE)
    told = ", ".join(one.name for one in near[:NAMED])
    more = f" and {len(near) - NAMED} more" if len(near) > NAMED else ""
    raise ToolFailed(
        f"No skill is certainly {wanted[:80]!r}. There are: {told}{more}.",
        is_tainted=any(one.is_tainted for one in near[:NAMED]),
    )


def _known(one: SkillFile) -> set[str]:
    return _words(f"{one.name} {one.skill.title if one.skill else ''}")


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[^\W_]+", text.casefold())}


def _line(one: Skill) -> str:
    mark = " [from outside]" if one.is_tainted else ""
    return f"- {one.name}: {on_a_line(one.title)}. {on_a_line(one.description)}{mark}"
