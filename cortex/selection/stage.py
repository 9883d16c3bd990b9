"""A stage of a recipe: a function from a draft to the next one, with all that is said of it elsewhere."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from cortex.selection.index.index import Index
from cortex.selection.plan.draft import PlanDraft
from cortex.selection.types import PlanInput

StageFunction = Callable[[PlanInput, Index, PlanDraft], PlanDraft]


class Stage(Struct, frozen=True, kw_only=True, eq=False):
    """A stage, which is called as its function is; receipts and pages know it by that one's name.

    `label`: what it decides, for people. `speaks_as`: other names that its reasons stand under. `is_guess`: it judges
    by the message what is needed, so that a tool it sent and nobody called is a lesson.
    """

    function: Callable[..., PlanDraft]
    label: str
    speaks_as: tuple[str, ...] = ()
    is_guess: bool = False

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.function.__name__

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a reason of its may stand under."""
        return (self.name, *self.speaks_as)

    def __call__(self, given: PlanInput, index: Index, draft: PlanDraft, **settings: Any) -> PlanDraft:
        """The draft that its function makes; `settings`: what a measure turns, each of a type of its own."""
        return self.function(given, index, draft, **settings)


def stage(
    label: str, *, speaks_as: tuple[str, ...] = (), is_guess: bool = False
) -> Callable[[Callable[..., PlanDraft]], Stage]:
    """Make a stage of a function; the arguments are those of `Stage`."""
    return lambda function: Stage(function=function, label=label, speaks_as=speaks_as, is_guess=is_guess)
