"""One call that waits for its person: looked at once more, or with its arguments as a form. Works without script."""

from collections.abc import Mapping, Sequence
from functools import partial

from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.services.turns.approval_weight import Weighed
from cortex.services.turns.call_changes import Editable
from cortex.services.workshop.call_forms import CallField, fields_of, read, typed_of
from web.bodies import TEXT_BYTES, takes
from web.chat_view import back_to
from web.render import Context, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
PLACE = "/approvals/{approval_id}/edit"
ARGUMENT = "a."


class ApprovalContext(Context, frozen=True, kw_only=True):
    """One question."""

    found: Editable = described("the request, its tool, and whether it can still be answered")
    weighed: Weighed = described("what the question weighs")
    back: str = described("where the person came from", default="/")


class ApprovalEditContext(Context, frozen=True, kw_only=True):
    """The request and its arguments."""

    found: Editable = described("the request, its tool, and whether it can still be answered")
    weighed: Weighed = described("what the question weighs")
    fields: Sequence[CallField] = described("the arguments as fields")
    typed: Mapping[str, str] = described("what each field holds")
    faults: Mapping[str, str] = described("field -> what is wrong with it", default_factory=dict)
    back: str = described("where the person came from", default="/")


@router.get("/approvals/{approval_id}")
async def ask(visit: UserVisit, approval_id: str, back: str = "/") -> Response:
    """One question on a page of its own: where what weighs much is looked at once more."""
    found = await visit.services.call_changes.editable(visit.user, approval_id)
    context = ApprovalContext(found=found, weighed=visit.services.approvals.weigh(found.request), back=back_to(back))
    return await visit.show("approval.html", context, conversation_id=found.request.conversation_id)


@router.get(PLACE)
async def show(visit: UserVisit, approval_id: str, back: str = "/") -> Response:
    """The arguments as they are."""
    found = await visit.services.call_changes.editable(visit.user, approval_id)
    return await _page(visit, found, typed_of(found.tool, found.arguments), back)


@router.post(PLACE)
@takes(TEXT_BYTES)
async def answer(visit: UserVisit, approval_id: str) -> Response:
    """Deny it, or allow it with the arguments as typed; what is wrong with them is said at their fields."""
    form = await visit.fields()
    back = form.get("back", "/")
    if form.get("choice") == "deny":
        await visit.services.approvals.answer(visit.user, approval_id, "deny")
        return visit.redirect(back_to(back), "Denied.")
    found = await visit.services.call_changes.editable(visit.user, approval_id)
    typed = {name.removeprefix(ARGUMENT): text for name, text in form.items() if name.startswith(ARGUMENT)}
    made = read(found.tool, typed, partial(visit.services.reminders.read_day, visit.user))
    if made.faults or form.get("choice") != "changed":
        return await _page(visit, found, typed, back, faults=made.faults)
    try:
        await visit.services.call_changes.allow(visit.user, approval_id, made.arguments)
    except UserError as refused:
        return await _page(visit, found, typed, back, error=refused.message)
    return visit.redirect(back_to(back), "Allowed.")


async def _page(
    visit: Visit,
    found: Editable,
    typed: Mapping[str, str],
    back: str,
    *,
    faults: Mapping[str, str] | None = None,
    error: str = "",
) -> Response:
    context = ApprovalEditContext(
        found=found,
        weighed=visit.services.approvals.weigh(found.request),
        fields=fields_of(found.tool),
        typed=typed,
        faults=faults or {},
        error=error,
        back=back_to(back),
    )
    return await visit.show(
        "approval_edit.html",
        context,
        conversation_id=found.request.conversation_id,
        status=422 if error or faults else 200,
    )
