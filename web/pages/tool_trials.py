"""Admin: try a message. Every recipe's plan side by side, one of them step by step, and messages kept to be checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response
from pydantic import BaseModel

from cortex.base.errors import UserError
from cortex.base.user import Rank
from cortex.services.models.profiles import PROFILE_NAMES
from cortex.services.workshop.tool_trials import RECIPE_NAMES, CaseVerdict, MessageTrial, Question, ToolCaseRow
from web.deps import ReauthedAdmin, Services, Text
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsContext(Context):
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
    error: str = described("why the form was refused", default="")
    error_field: str = described("the field it is about", default="")


@router.get(PLACE)
async def show(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """The empty form and the cases."""
    return await _page(request, services, user, Asking())


@router.post(PLACE)
async def ask(request: Request, services: Services, user: ReauthedAdmin, asking: Annotated[Asking, Form()]) -> Response:
    """Try the message, or keep it as a case."""
    try:
        if asking.do == "keep":
            await services.tool_trials.add_case(user, asking.question(), asking.expected)
            return redirect(request, f"{PLACE}#cases", "Kept. It is checked whenever you run the list.")
        trial = await services.tool_trials.ask(user, asking.question())
    except UserError as refused:
        return await _page(request, services, user, asking, refused=refused)
    expected = " ".join(next(row.names for row in trial.rows if row.recipe == asking.recipe))
    return await _page(request, services, user, asking.model_copy(update={"expected": expected}), trial=trial)


@router.post(PLACE + "/run")
async def run(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    recipe: Text = "cortex",
    is_assumed: Text = "",
) -> Response:
    """Run every case."""
    asking = Asking(recipe=recipe, is_assumed=is_assumed)
    try:
        found = await services.tool_trials.try_cases(user, recipe, is_assumed=bool(is_assumed))
    except UserError as refused:
        return await _page(request, services, user, Asking(), refused=refused)
    return await _page(request, services, user, asking, verdicts={one.case.id: one for one in found})


@router.post(PLACE + "/{case_id}/remove")
async def remove(request: Request, user: ReauthedAdmin, services: Services, case_id: str) -> Response:
    """Forget a case."""
    await services.tool_trials.remove_case(user, case_id)
    return redirect(request, f"{PLACE}#cases", "Removed from the list.")


async def _page(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    asking: Asking,
    *,
    trial: MessageTrial | None = None,
    verdicts: dict[str, CaseVerdict] | None = None,
    refused: UserError | None = None,
) -> Response:
    context = TrialsContext(
        frame=await frame_of(request, services, user, here=HREF),
        asking=asking,
        roles=await services.roles.names(user),
        people=await services.tool_trials.people(),
        models=await services.tool_trials.models_of(user, asking.user),
        trial=trial,
        cases=await services.tool_trials.cases(),
        verdicts=verdicts or {},
        error=refused.message if refused else "",
        error_field=refused.field if refused else "",
    )
    return respond(request, "tool_trials.html", context, status=422 if refused else 200)
