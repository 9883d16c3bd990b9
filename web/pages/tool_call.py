"""Admin: call a tool by hand. A form made of its schema; the call goes through the gate, and its result is shown."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fastapi.responses import Response
from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.services.tools.listing import ToolSheet
from cortex.services.workshop.call_forms import WHOLE, CallField, fields_of, read, typed_of
from cortex.services.workshop.call_trials import PATIENCE_S, CallResult, TrialCall
from web.bodies import TEXT_BYTES, takes
from web.render import Context, described
from web.routes import PageRouter
from web.security import local_path
from web.tool_view import TOOLS
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
PLACE = TOOLS + "/{tool}/call"
ARGUMENT = "a."
FORM_MAX = 64_000


class _Typed(Struct, frozen=True, kw_only=True):
    """The form. `sure`: the call that was said yes to."""

    role: str = "orchestrator"
    values: Mapping[str, str] = field(default_factory=dict)
    whole: str = ""
    sure: str = ""


class CallContext(Context, frozen=True, kw_only=True):
    """The form, what is wrong with it, and the last call."""

    sheet: ToolSheet = described("the tool")
    why_not: str = described("why nobody can call it, or empty", default="")
    fields: Sequence[CallField] = described("its arguments as fields")
    typed: _Typed = described("the form as typed")
    faults: Mapping[str, str] = described("field -> what is wrong with it", default_factory=dict)
    roles: Sequence[str] = described("roles to call it in")
    asked: TrialCall | None = described("a call that waits for a yes on this page", default=None)
    tried: CallResult | None = described("the call that was made", default=None)
    cid: str = described("its conversation, for the parts of it", default="")
    opens: Mapping[str, Any] = described("parts that are being written: none here", default_factory=dict)
    moment: int = described("a number that differs each time, so that the next look is a new one", default=0)


@router.get(PLACE)
async def show(visit: ReauthedAdminVisit, tool: str, run: str = "") -> Response:
    """The form; with `run` also that call, and the form as it was filled for it."""
    sheet = await visit.services.tool_listing.sheet(visit.user, tool)
    tried = await visit.services.call_trials.result(visit.user, tool, run) if run else None
    typed = _Typed()
    if tried is not None:
        values = typed_of(sheet.tool, tried.call.arguments) if tried.call else {}
        typed = _Typed(role=tried.turn.role or typed.role, values=values)
    return await _page(visit, sheet, typed, tried=tried)


@router.post(PLACE)
@takes(TEXT_BYTES)
async def call(visit: ReauthedAdminVisit, tool: str) -> Response:
    """Make the call, or say what is wrong with it, or ask for a yes first."""
    sheet = await visit.services.tool_listing.sheet(visit.user, tool)
    form = {name: str(value)[:FORM_MAX] for name, value in (await visit.request.form()).items()}
    typed = _Typed(
        role=form.get("role", "") or "orchestrator",
        values={name.removeprefix(ARGUMENT): value for name, value in form.items() if name.startswith(ARGUMENT)},
        whole=form.get(WHOLE, ""),
        sure=form.get("sure", ""),
    )
    made = read(sheet.tool, typed.values, partial(visit.services.reminders.read_day, visit.user), typed.whole)
    if made.faults:
        return await _page(visit, sheet, typed, faults=made.faults)
    try:
        asked = await visit.services.call_trials.ask(visit.user, tool, typed.role, made.arguments)
        if asked.sure and typed.sure != asked.sure:
            return await _page(visit, sheet, replace(typed, sure=asked.sure), asked=asked)
        key = await visit.services.call_trials.start(visit.user, tool, typed.role, made.arguments)
    except UserError as refused:
        return await _page(visit, sheet, typed, error=refused.message)
    await visit.services.call_trials.result(visit.user, tool, key, patience_s=PATIENCE_S)
    return visit.redirect(local_path(f"{TOOLS}/{tool}/call?run={key}#tried", TOOLS))


async def _page(
    visit: Visit,
    sheet: ToolSheet,
    typed: _Typed,
    *,
    faults: Mapping[str, str] | None = None,
    error: str = "",
    asked: TrialCall | None = None,
    tried: CallResult | None = None,
) -> Response:
    context = CallContext(
        sheet=sheet,
        why_not=await visit.services.call_trials.why_not(sheet.line.name),
        fields=fields_of(sheet.tool),
        typed=typed,
        faults=faults or {},
        error=error,
        roles=await visit.services.roles.names(visit.user),
        asked=asked,
        tried=tried,
        cid=tried.conversation_id if tried else "",
        moment=round(visit.services.runtime.ticks_s() * 1000),
    )
    return await visit.show("tool_call.html", context, block="tried", status=422 if error or faults else 200)
