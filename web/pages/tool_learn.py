"""Admin: what use teaches about the choice of tools. Suggestions to accept or turn down, answers to undo, refits."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response
from pydantic import BaseModel

from cortex.base.errors import UserError
from cortex.services.workshop.learning import LearningPage
from cortex.services.workshop.refits import CASES_LEAST, Report, Version
from web.bodies import TEXT_BYTES, takes
from web.deps import Number
from web.render import Context, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
HREF = "/admin/tools/learn"
CAME = {
    "rescued": "called though it was not sent",
    "discovered": "searched for, then called",
    "missing": "sent after an answer lacked it",
    "reported": "reported as missing",
}


class LearnForm(BaseModel):
    """One of the page's buttons. `do`: example, phrase, agree, down, undo, refit or choose."""

    do: str = ""
    tool: str = ""
    wording: str = ""
    phrase: str = ""
    answer: str = ""
    number: Number = 0


class LearnContext(Context, frozen=True, kw_only=True):
    """The page."""

    learned: LearningPage = described("suggestions, tools sent for nothing, answers")
    versions: Sequence[Version] = described("refits, the newest first")
    own_cases: int = described("messages of this server that a refit would learn from")
    least: int = described("how many it needs", default=CASES_LEAST)
    came: Mapping[str, str] = described("how a tool came -> words", default_factory=lambda: CAME)
    refused: Report | None = described("the figures of a refit that was refused", default=None)
    error_tool: str = described("the tool it belongs to, or empty", default="")


@router.get(HREF)
async def show(visit: ReauthedAdminVisit) -> Response:
    """Everything that is to be learned."""
    return await _page(visit)


@router.post(HREF)
@takes(TEXT_BYTES)
async def act(visit: ReauthedAdminVisit, form: Annotated[LearnForm, Form()]) -> Response:
    """Do what the button says."""
    try:
        if form.do == "refit":
            tried = await visit.services.refits.make(visit.user)
            if tried.worse:
                told = f"The refit was refused: {tried.worse}."
                return await _page(visit, error=told, refused=tried.report)
            return visit.redirect(f"{HREF}#refit", f"Refit {tried.number} is in force from the next message on.")
        told = await _done(visit, form)
    except UserError as refused:
        return await _page(visit, error=refused.message, error_tool=form.tool)
    return visit.redirect(HREF, told)


async def _done(visit: Visit, form: LearnForm) -> str:
    """Do it; what to say of it."""
    match form.do:
        case "example":
            await visit.services.learning.add_example(visit.user, form.tool, form.wording)
            return f"Added as an example of {form.tool}. Applies from the next message on."
        case "phrase":
            said = await visit.services.learning.add_phrase(visit.user, form.tool, form.phrase)
            return f"“{said}” speaks for {form.tool} from the next message on."
        case "agree":
            await visit.services.learning.agree(visit.user, form.tool, form.wording)
            return f"Noted: {form.tool} is not needed for it. The next refit learns from it."
        case "down":
            await visit.services.learning.turn_down(visit.user, form.tool, form.wording)
            return "Turned down: it will not be suggested again."
        case "undo":
            answer = await visit.services.learning.take_back(visit.user, form.answer)
            return f"Taken back: {answer.tool} is open again."
        case "choose":
            await visit.services.refits.choose(visit.user, form.number)
            return f"Refit {form.number} is in force." if form.number else "The shipped model is in force."
        case _:
            raise UserError("Press one of the buttons.")


async def _page(visit: Visit, *, error: str = "", error_tool: str = "", refused: Report | None = None) -> Response:
    context = LearnContext(
        learned=await visit.services.learning.page(visit.user),
        versions=await visit.services.refits.versions(visit.user),
        own_cases=len(await visit.services.refits.cases()),
        refused=refused,
        error=error,
        error_tool=error_tool,
    )
    return await visit.show("tool_learn.html", context, status=422 if error else 200)
