"""A plan in the making: the votes and marks that one stage hands to the next. Frozen; stages return changed copies."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.skill import SkillFit
from cortex.selection.registry.catalog import CatalogText
from cortex.selection.registry.rights import NO_RIGHTS, Rights
from cortex.selection.types import Form, SentTool


class Vote(Struct, frozen=True, kw_only=True):
    """One stage's belief that a tool is needed, with its reason in words for the person. `stage`: a name of its.

    `is_own`: it rests on what this server taught, so no gate of the model stops it.
    """

    stage: str
    p: float
    why: str
    is_own: bool = False


BY_YOU = Vote(stage="pins", p=0.0, why="you chose “always” for this chat")


class ModelChances(Struct, frozen=True, kw_only=True):
    """The fitted model's view of a text: the chance of each tool that it knows.

    `wish`: that anything is wanted at all; `work`: that it is more than words and the web.
    """

    chances: Mapping[str, float] = field(default_factory=dict)
    wish: float = 1.0
    work: float = 1.0


NOT_LEARNED = ModelChances()


class PlanDraft(Struct, frozen=True, kw_only=True):
    """A plan in the making.

    `is_shut`: nothing is sent; `is_all`: everything permitted is. `pins` are in, whatever the score; `resting` join
    once something else opens the epoch. `chances`: one probability a tool; `threshold`: what a recipe holds them
    against, None = each tool's own. `fresh`: what this round adds to `kept`; without an epoch (`is_afresh`) all of it.
    `dropped`: why a wanted tool stays out. `listing`: a catalog that a stage wrote itself; None leaves it to the epoch.
    `labels` ride in the receipt. `grown`: as in `PlannerMemory`. `forms`: of tools not sent in full.
    """

    rights: Rights = NO_RIGHTS
    is_shut: bool = False
    is_all: bool = False
    pins: Mapping[str, Vote] = field(default_factory=dict)
    resting: Mapping[str, Vote] = field(default_factory=dict)
    votes: Mapping[str, tuple[Vote, ...]] = field(default_factory=dict)
    learned: ModelChances = NOT_LEARNED
    chances: Mapping[str, Vote] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    threshold: float | None = None
    is_open: bool = False
    boundary: str = ""
    number: int = 0
    kept: tuple[SentTool, ...] = ()
    fresh: tuple[SentTool, ...] = ()
    noted: tuple[str, ...] = ()
    late: str = ""
    dropped: Mapping[str, Vote] = field(default_factory=dict)
    is_afresh: bool = False
    listing: CatalogText | None = None
    tool_choice: Literal["auto", "required", "none"] = "auto"
    labels: Mapping[str, str] = field(default_factory=dict)
    grown: tuple[str, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=dict)
    skills: tuple[SkillFit, ...] = ()


def everything(draft: PlanDraft) -> tuple[SentTool, ...]:
    """All that is permitted, as the mode All sends it: nothing is left to discover."""
    why = "All: everything that the role permits"
    return tuple(SentTool(name=name, form="full", stage="all", reason=why) for name in draft.rights.listed)


def with_votes(draft: PlanDraft, found: Mapping[str, Vote]) -> PlanDraft:
    """Return the draft with a vote more for each of these tools."""
    if not found:
        return draft
    return replace(draft, votes={**draft.votes, **{name: (*draft.votes.get(name, ()), found[name]) for name in found}})
