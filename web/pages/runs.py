"""Runs: the list of them, and one round by round: plan, request, calls, what it took; also under another recipe."""

from collections.abc import Callable, Sequence

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.record import as_dict
from cortex.services.chat.transcript_views import turn_of
from cortex.services.tools.replays import Replay
from cortex.services.usage.runs import RunList, RunQuery
from cortex.services.usage.traces import Trace
from web.deps import Number
from web.render import MORE, Context, NavEntry, address, described, in_pieces
from web.routes import PageRouter
from web.visit import UserVisit, Visit, of_reauthed_admin

router = PageRouter()
HREF = "/runs"
NAV = NavEntry(
    title="Runs",
    href=HREF,
    icon="steps",
    order=38,
    under=MORE,
    about="Every answer and job step by step, with its trace.",
)
LABELS = (("", "All"), ("running", "Running"), ("done", "Done"), ("failed", "Failed"), ("stopped", "Stopped"))
WORDS_MAX = 100


class RunsContext(Context, frozen=True, kw_only=True):
    """The list."""

    view: RunList = described("the runs of this page, and what they can be narrowed by")
    wanted: RunQuery = described("the filter")
    statuses: Sequence[tuple[str, str]] = described("ways to have ended, each with its word", default=LABELS)
    is_narrow: bool = described("whether the filter leaves anything out")
    place: Callable[..., str] = described("the address of this list with other values of the filter, first page")
    moment: int = described("a number that differs each time, so that the next look is a new one")


@router.get(HREF)
async def show_all(
    visit: UserVisit,
    status: str = "",
    role: str = "",
    tool: str = "",
    conversation: str = "",
    job: str = "",
    person: str = "",
    page: Number = 1,
) -> Response:
    """The runs that fit, the newest first. Anybody else's are an admin's, with the password given lately."""
    if visit.user.is_admin and person not in ("", visit.user.id):
        await of_reauthed_admin(visit.request)
    typed = {"status": status, "role": role, "tool": tool, "conversation": conversation, "job": job, "person": person}
    wanted = RunQuery(**{name: value.strip()[:WORDS_MAX] for name, value in typed.items()}, page=page)
    context = RunsContext(
        view=await visit.services.runs.list(visit.user, wanted),
        wanted=wanted,
        is_narrow=replace(wanted, page=1) != RunQuery(),
        place=lambda **values: _place(replace(wanted, **{"page": 1, **values})),
        moment=round(visit.services.runtime.ticks_s() * 1000),
    )
    return await visit.show("runs.html", context)


def _place(wanted: RunQuery) -> str:
    """The address of a list."""
    return address(HREF, **{name: value for name, value in as_dict(wanted).items() if value != 1})


class TraceContext(Context, frozen=True, kw_only=True):
    """A turn's trace."""

    trace: Trace = described("the turn")
    key: str = described("its id in addresses")
    owner: str = described("whose it is, empty for the reader's own", default="")
    recipes: Sequence[str] = described("what a round can be planned again under")
    replay: Replay | None = described("the plan under another recipe, when one was asked for", default=None)
    round: int = described("the round that was planned again, 0 for none", default=0)
    recipe: str = described("the recipe chosen", default="")


@router.get("/runs/{key}")
async def show(visit: UserVisit, key: str, round: Number = 0, recipe: str = "") -> Response:
    """The turn; with `round` and `recipe` that round is planned again, without a call and without an effect."""
    owner_id = await _owner(visit, key)
    trace = await visit.services.traces.trace(visit.user, turn_of(key))
    replay, error = None, ""
    if round and recipe:
        try:
            replay = await visit.services.replays.replay(owner_id, turn_of(key), round, recipe)
        except UserError as refused:
            error = refused.message
    context = TraceContext(
        trace=trace,
        key=key,
        owner="" if owner_id == visit.user.id else (await visit.services.accounts.user(owner_id)).name,
        recipes=visit.services.replays.recipes,
        replay=replay,
        round=round,
        recipe=recipe,
        error=error,
    )
    return await visit.show("trace.html", context, here="", status=422 if error else 200)


@router.get("/runs/{key}/trace.json")
async def download(visit: UserVisit, key: str) -> Response:
    """All of it as a file, secrets blotted out."""
    await _owner(visit, key)
    trace = await visit.services.traces.trace(visit.user, turn_of(key))
    headers = {"Content-Disposition": f'attachment; filename="cortex-{key[:40]}.json"'}
    return in_pieces(Response(trace.to_json(), media_type="application/json", headers=headers))


async def _owner(visit: Visit, key: str) -> str:
    """Return whose turn it is. Somebody else's is opened by an admin alone, who gave the password lately."""
    owner_id = await visit.services.traces.owner_of(visit.user, turn_of(key))
    if owner_id != visit.user.id:
        await of_reauthed_admin(visit.request)
    return owner_id
