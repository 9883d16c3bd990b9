"""Admin: try a message. Every recipe's plan side by side, one of them step by step, and messages kept to be checked."""

from collections.abc import Sequence
from typing import Annotated, cast

from fastapi import Form
from fastapi.responses import Response
from pydantic import BaseModel

from cortex.base.errors import UserError
from cortex.base.user import Rank
from cortex.services.models.profiles import PROFILE_NAMES
from cortex.services.workshop.tool_trials import RECIPE_NAMES, CaseVerdict, MessageTrial, Question, ToolCaseRow
from web.deps import Text
from web.render import Context, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
HREF = "/admin/tools"
PLACE = f"{HREF}/try"


class Asking(BaseModel):
    """The form as a browser sends it. `do`: try, or keep as a case that expects `expected`."""

    text: str = ""
    role: str = "orchestrator"
    rank: str = ""
    user: str = ""
    model: str = ""
    profile: str = ""
    recipe: str = "cortex"
    is_assumed: str = ""
    expected: str = ""
    do: str = "try"

    def question(self) -> Question:
        """Return what the service takes; it checks the values."""
        return Question(
            text=self.text,
            role=self.role,
            rank=cast("Rank", self.rank),
            person=self.user,
            model=self.model,
            profile=self.profile,
            recipe=self.recipe,
            is_assumed=bool(self.is_assumed),
        )


class TrialsContext(Context, frozen=True, kw_only=True):
    """The form, what it found, the cases."""

    asking: Asking = described("the form as typed")
    roles: Sequence[str] = described("roles to ask in")
    people: Sequence[str] = described("whose rights and settings it can be tried with")
    models: Sequence[str] = described("that person's models")
    profiles: Sequence[str] = described("kinds of models by what they cache", default=PROFILE_NAMES)
    recipes: Sequence[str] = described("the recipes there are", default=RECIPE_NAMES)
    trial: MessageTrial | None = described("what every recipe makes of the message", default=None)
    cases: Sequence[ToolCaseRow] = described("messages kept to be checked")
    verdicts: dict[str, CaseVerdict] = described("case -> what became of it, once they were run", default_factory=dict)


@router.get(PLACE)
async def show(visit: ReauthedAdminVisit) -> Response:
    """The empty form and the cases."""
    return await _page(visit, Asking())


@router.post(PLACE)
async def ask(visit: ReauthedAdminVisit, asking: Annotated[Asking, Form()]) -> Response:
    """Try the message, or keep it as a case."""
    try:
        if asking.do == "keep":
            await visit.services.tool_trials.add_case(visit.user, asking.question(), asking.expected)
            return visit.redirect(f"{PLACE}#cases", "Kept. It is checked whenever you run the list.")
        trial = await visit.services.tool_trials.ask(visit.user, asking.question())
    except UserError as refused:
        return await _page(visit, asking, refused=refused)
    expected = " ".join(next(row.names for row in trial.rows if row.recipe == asking.recipe))
    return await _page(visit, asking.model_copy(update={"expected": expected}), trial=trial)


@router.post(PLACE + "/run")
async def run(visit: ReauthedAdminVisit, recipe: Text = "cortex", is_assumed: Text = "") -> Response:
    """Run every case."""
    asking = Asking(recipe=recipe, is_assumed=is_assumed)
    try:
        found = await visit.services.tool_trials.try_cases(visit.user, recipe, is_assumed=bool(is_assumed))
    except UserError as refused:
        return await _page(visit, Asking(), refused=refused)
    return await _page(visit, asking, verdicts={one.case.id: one for one in found})


@router.post(PLACE + "/{case_id}/remove")
async def remove(visit: ReauthedAdminVisit, case_id: str) -> Response:
    """Forget a case."""
    await visit.services.tool_trials.remove_case(visit.user, case_id)
    return visit.redirect(f"{PLACE}#cases", "Removed from the list.")


async def _page(
    visit: Visit,
    asking: Asking,
    *,
    trial: MessageTrial | None = None,
    verdicts: dict[str, CaseVerdict] | None = None,
    refused: UserError | None = None,
) -> Response:
    context = TrialsContext(
        asking=asking,
        roles=await visit.services.roles.names(visit.user),
        people=await visit.services.tool_trials.people(),
        models=await visit.services.tool_trials.models_of(visit.user, asking.user),
        trial=trial,
        cases=await visit.services.tool_trials.cases(),
        verdicts=verdicts or {},
    )
    return await visit.show("tool_trials.html", context, refused=refused)
