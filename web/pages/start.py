"""The four questions of the first day: who opens this, how to notify, which model, who else. Each tries its answer."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import CortexError, NotAllowed, UserError
from cortex.services.health.first_steps import FirstSteps
from cortex.services.health.opening import OpeningService, Way
from cortex.services.models import prices
from cortex.services.models.presets import Preset
from cortex.services.models.probe import TestReport
from cortex.services.notices.addresses import ChannelView
from cortex.services.notices.devices import DeviceView
from web.deps import Text
from web.render import Context, described
from web.routes import PageRouter
from web.security import client, is_phone
from web.visit import AdminVisit, ReauthedAdminVisit, ReauthedVisit, UserVisit, Visit

router = PageRouter()
HERE = "/start"
WAYS: Mapping[str, Way] = {"here": "here", "network": "network", "anywhere": "anywhere"}
SET_HERE = ("host", "public_url", "trusted_proxies", "allow_plain_http")


class StartContext(Context, frozen=True, kw_only=True):
    """The questions."""

    first: FirstSteps = described("each question with its state; whether the pages speak of them")
    opened: str = described("the question that is open, or empty")
    opening: OpeningService = described("the ways to open it")
    port: int = described("the port that is listened on")
    for_others: str = described("the address to hand on, empty where only this machine opens it")
    given: Sequence[str] = described("settings that were given outside and stay as they are")
    is_phone: bool = described("whether a phone asks, which scans no code of its own")
    trial_ends: datetime | None = described("when what was changed goes back by itself", default=None)
    devices: Sequence[DeviceView] = described("the devices of this person that take push")
    tells: Sequence[ChannelView] = described("further ways to be told")
    presets: Sequence[Preset] = described("providers and servers to connect")
    way: str = described("the way that was chosen of the open question", default="")
    name: str = described("a name that was typed", default="")
    address: str = described("an address that was typed", default="")
    link: str = described("a one-time address to scan, shown this once", default="")
    link_name: str = described("whom that is for, empty for the person's own device", default="")
    lacks: Sequence[str] | None = described("what a test found missing, a sentence each", default=None)
    report: TestReport | None = described("what a test of the model found", default=None)
    restarts: bool = described("whether Cortex begins anew for what was chosen", default=False)
    tested: str | None = described("why a test did not go out, '' when it did; None without one", default=None)


@router.get(HERE)
async def show(visit: UserVisit, open: str = "", way: str = "") -> Response:
    """The questions, the first that is not done open. An admin who came by the address on trial has shown it works."""
    came_by_it = await visit.services.opening.note(visit.user, visit.origin, client(visit.request)[1])
    if came_by_it and visit.user.is_admin and visit.services.server_settings.trial_ends_at:
        await visit.services.server_settings.keep(visit.user)
    return await visit.show("start.html", await _page(visit, opened=open, way=way))


@router.post(HERE)
async def hide(visit: UserVisit, hidden: Text = "") -> Response:
    """Speak of them on other pages, or no more."""
    await visit.services.first_steps.hide(visit.user, is_hidden=bool(hidden))
    return visit.redirect(HERE, "Other pages do not show this any more." if hidden else "Other pages show this again.")


@router.get(HERE + "/states")
async def states(visit: UserVisit, was: str = "", shown: str = "") -> Response:
    """The states alone, for a page that waits; all of it once another way to open it is in force than it `was`.

    `shown`: the question beside which a code or the words of a test stand, until that has come about.
    """
    answer = await visit.show("start.html", await _page(visit, opened=shown), block="states")
    if visit.services.opening.way != was:
        answer.headers["HX-Redirect"] = f"{HERE}?open=open{'&way=anywhere' if was == 'anywhere' else ''}"
    return answer


# --- how others open it


@router.post(HERE + "/open")
async def choose_way(visit: ReauthedAdminVisit, way: Text = "", name: Text = "") -> Response:
    """Set what a way needs, and begin anew where that takes a restart."""
    chosen = WAYS.get(way, "here")
    try:
        changes = visit.services.opening.changes(chosen, name)
        if "network" in (chosen, visit.services.opening.way) and chosen != visit.services.opening.way:
            visit.services.restarts.must_be_possible()
        changed = await visit.services.server_settings.set(visit.user, changes, is_confirmed=True)
        if chosen == "here":
            await visit.services.opening.stay_here(visit.user)
        if "host" in changed:
            await visit.services.restarts.ask(visit.user, "to be opened another way")
            # No redirect: whoever answered that may be gone by then. The page asks until the next one answers.
            context = await _page(visit, opened="open", way=way)
            return await visit.show("start.html", replace(context, restarts=True))
    except UserError as refused:
        context = await _page(visit, opened="open", way=way)
        return await visit.show("start.html", replace(context, name=name), refused=refused)
    return visit.redirect(f"{HERE}?open={'' if chosen == 'here' else 'open'}", "Saved.")


@router.post(HERE + "/keep")
async def keep(visit: ReauthedAdminVisit) -> Response:
    """Let what was changed stay."""
    await visit.services.server_settings.keep(visit.user)
    return visit.redirect(f"{HERE}?open=open", "It stays so.")


@router.post(HERE + "/test")
async def test(visit: AdminVisit) -> Response:
    """Ask the https address for itself; what works stays, with no further question."""
    lacks = await visit.services.opening.test(visit.user)
    if not lacks:
        await visit.services.server_settings.keep(visit.user)
    return await visit.show("start.html", replace(await _page(visit, opened="open"), lacks=lacks))


# --- how to notify, and the person's other devices


@router.post(HERE + "/device")
async def show_code(visit: ReauthedVisit, open: Text = "notify") -> Response:
    """A code that logs the person in on the device that scans it, once, within ten minutes."""
    context = await _page(visit, opened=open, way="phone" if open == "notify" else "")
    if not context.for_others:
        refused = UserError("Only this machine can open Cortex so far. Answer the first question first.")
        return await visit.show("start.html", context, refused=refused)
    token = await visit.services.device_links.new(visit.user)
    return await visit.show("start.html", replace(context, link=f"{context.for_others}/join#{token}"))


@router.post(HERE + "/tell")
async def tell(visit: UserVisit, channel: Text = "", address: Text = "", key: Text = "") -> Response:
    """Keep an address and send a test there; without a channel, push one to each device."""
    steps = visit.services.first_steps
    try:
        tested = (
            await steps.tell(visit.user, channel, address, key) if channel else await steps.test_devices(visit.user)
        )
    except CortexError as refused:
        context = replace(await _page(visit, opened="notify", way=channel), address=address)
        return await visit.show("start.html", context, refused=refused)
    context = await _page(visit, opened="notify", way=channel or "browser")
    return await visit.show("start.html", replace(context, tested=tested, address=address))


# --- which model


@router.post(HERE + "/model")
async def try_model(visit: UserVisit) -> Response:
    """Ask the model that answers first for a sentence and a tool, and keep what it can do."""
    step = (await visit.services.first_steps.all(visit.user)).step("model")
    try:
        report = await visit.services.models.test_saved(visit.user, step.what if step else "")
    except CortexError as refused:
        report = TestReport(is_ok=False, message=refused.message)
    return await visit.show("start.html", replace(await _page(visit, opened="model"), report=report))


# --- who else


@router.post(HERE + "/invite")
async def invite(visit: ReauthedAdminVisit, name: Text = "") -> Response:
    """A new person, and the code that lets them choose a password."""
    try:
        invited = await visit.services.accounts.add_user(name, "member", by=visit.user.id)
    except (UserError, NotAllowed) as refused:
        context = replace(await _page(visit, opened="people"), name=name)
        return await visit.show("start.html", context, refused=refused)
    context = await _page(visit, opened="people")
    link = f"{context.for_others or visit.origin}/welcome#{invited.token}"
    return await visit.show("start.html", replace(context, link=link, link_name=invited.user.name))


@router.post(HERE + "/alone")
async def stay_alone(visit: AdminVisit) -> Response:
    """Note that there is nobody else."""
    await visit.services.first_steps.stay_alone(visit.user)
    return visit.redirect(HERE, "Saved.")


async def _page(visit: Visit, *, opened: str | None = None, way: str = "") -> StartContext:
    services = visit.services
    port = visit.port
    first = await services.first_steps.all(visit.user, port)
    notify = first.step("notify")
    undone = next((step.name for step in first.steps if not step.is_done), "")
    undone = "notify" if notify and notify.state == "waiting" else undone  # a device was added a moment ago
    rows = await services.server_settings.rows() if visit.user.is_admin else {}
    return StartContext(
        first=first,
        opened=opened or undone,
        way=way,
        opening=services.opening,
        port=port,
        for_others=visit.address_for_others,
        given=[name for name in SET_HERE if services.server_settings.is_given(name)],
        is_phone=is_phone(visit.request),
        trial_ends=min((row.trial_ends_at for row in rows.values() if row.trial_ends_at), default=None),
        devices=await services.devices.list(visit.user),
        tells=[one for one in await services.addresses.views(visit.user) if one.kind.on_first_day],
        presets=await prices.offered(services.models.presets),
    )
