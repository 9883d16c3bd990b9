"""Edit before allowing: the arguments of a call that waits for its person, as a form. Works without script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.turns.call_changes import Editable
from cortex.services.workshop.call_forms import CallField, fields_of, read, typed_of
from web.bodies import TEXT_BYTES, takes
from web.chat_view import back_to
from web.deps import CurrentUser, Services
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
PLACE = "/approvals/{approval_id}/edit"
ARGUMENT = "a."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalEditContext(Context):
    """The request and its arguments."""

    found: Editable = described("the request, its tool, and whether it can still be answered")
    fields: Sequence[CallField] = described("the arguments as fields")
    typed: Mapping[str, str] = described("what each field holds")
    faults: Mapping[str, str] = described("field -> what is wrong with it", default_factory=dict)
    error: str = described("why the call could not run like this", default="")
    back: str = described("where the person came from", default="/")


@router.get(PLACE)
async def show(request: Request, services: Services, user: CurrentUser, approval_id: str, back: str = "/") -> Response:
    """The arguments as they are."""
    found = await services.call_changes.editable(user, approval_id)
    return await _page(request, services, user, found, typed_of(found.tool, found.arguments), back)


@router.post(PLACE)
@takes(TEXT_BYTES)
async def answer(request: Request, services: Services, user: CurrentUser, approval_id: str) -> Response:
    """Deny it, or allow it with the arguments as typed; what is wrong with them is said at their fields."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    back = form.get("back", "/")
    if form.get("choice") == "deny":
        await services.approvals.answer(user, approval_id, "deny")
        return redirect(request, back_to(back), "Denied.")
    found = await services.call_changes.editable(user, approval_id)
    typed = {name.removeprefix(ARGUMENT): text for name, text in form.items() if name.startswith(ARGUMENT)}
    made = read(found.tool, typed)
    if made.faults or form.get("choice") != "changed":
        return await _page(request, services, user, found, typed, back, faults=made.faults)
    try:
        await services.call_changes.allow(user, approval_id, made.arguments)
    except UserError as refused:
        return await _page(request, services, user, found, typed, back, error=refused.message)
    return redirect(request, back_to(back), "Allowed.")


async def _page(
    request: Request,
    services: Services,
    user: User,
    found: Editable,
    typed: Mapping[str, str],
    back: str,
    *,
    faults: Mapping[str, str] | None = None,
    error: str = "",
) -> Response:
    context = ApprovalEditContext(
        frame=await frame_of(request, services, user, conversation_id=found.request.conversation_id),
        found=found,
        fields=fields_of(found.tool),
        typed=typed,
        faults=faults or {},
        error=error,
        back=back_to(back),
    )
    return respond(request, "approval_edit.html", context, status=422 if error or faults else 200)
