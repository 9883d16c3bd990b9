"""A plan in the making: the votes and marks that one stage hands to the next. Frozen; stages return changed copies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from cortex.base.skill import SkillFit
from cortex.selection.catalog import CatalogText
from cortex.selection.rights import NO_RIGHTS, Rights
from cortex.selection.types import Form, SentTool, StageName, ToolEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One stage's belief that a tool is needed, with its reason in words for the person.

    `is_own`: it rests on what this server taught, so no gate of the model stops it.
    """

    stage: StageName
    p: float
    why: str
    is_own: bool = False


BY_YOU = Vote(stage="pins", p=0.0, why="you chose “always” for this chat")
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChances:
    """What the fitted model makes of a text.

    `chances`: of each tool that it knows. `wish`: that anything is wanted at all; `work`: that it is more than words
    and the web.
    """

    chances: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    wish: float = 1.0
    work: float = 1.0


NOT_LEARNED = ModelChances()


@dataclass(frozen=True, kw_only=True)
class PlanDraft:
    """A plan in the making.

    `is_shut`: nothing is sent; `is_all`: everything permitted is. `pins` are in, whatever the score; `resting` join
    them once something else opens the epoch. `chances`: one probability a tool. `threshold`: the one
    that a recipe holds them against; None = each tool's own. `fresh`: what this round adds to
    `kept`. `dropped`: why a wanted tool stays out. `is_afresh`: no epoch, `fresh` is the whole set of this round.
    `listing`: a catalog that a stage wrote itself; None leaves it to the epoch. `labels` ride in the receipt.
    `grown`: what the recipe keeps for the whole conversation (`PlannerMemory.grown`). `forms`: of tools not sent in
    full. `skills`: those of the user that fit.
    """

    rights: Rights = NO_RIGHTS
    is_shut: bool = False
    is_all: bool = False
    pins: Mapping[str, Vote] = field(default_factory=lambda: NOTHING)
    resting: Mapping[str, Vote] = field(default_factory=lambda: NOTHING)
    votes: Mapping[str, tuple[Vote, ...]] = field(default_factory=lambda: NOTHING)
    learned: ModelChances = NOT_LEARNED
    chances: Mapping[str, Vote] = field(default_factory=lambda: NOTHING)
    wanted: tuple[str, ...] = ()
    threshold: float | None = None
    is_open: bool = False
    boundary: str = ""
    number: int = 0
    kept: tuple[SentTool, ...] = ()
    fresh: tuple[SentTool, ...] = ()
    noted: tuple[str, ...] = ()
    late: str = ""
    dropped: Mapping[str, Vote] = field(default_factory=lambda: NOTHING)
    is_afresh: bool = False
    listing: CatalogText | None = None
    tool_choice: Literal["auto", "required", "none"] = "auto"
    labels: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    grown: tuple[str, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=lambda: NOTHING)
    skills: tuple[SkillFit, ...] = ()

    @property
    def permitted(self) -> tuple[ToolEntry, ...]:
        """What may be used, in registry order, meta tools last."""
        return self.rights.permitted


def marked(draft: PlanDraft, **marks: Any) -> PlanDraft:
    """The draft with these fields, as `replace` makes it: in a tenth of the time, which a plan takes ten times.

    Any: each field has its own type. TypeError for one that there is not.
    """
    if not marks.keys() <= draft.__dict__.keys():
        raise TypeError(f"no fields of a draft: {sorted(marks.keys() - draft.__dict__.keys())}")
    made = object.__new__(PlanDraft)
    made.__dict__.update(draft.__dict__, **marks)
    return made
