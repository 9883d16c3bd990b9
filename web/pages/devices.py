"""Devices that take push: their list, adding this one, names, tests, removal; and what scripts ask under `/push`."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from cortex.base.errors import NotFound, UserError
from cortex.services.notices.devices import DeviceView, PushKey, Subscription
from web.deps import CurrentLogin, CurrentUser, Services, Text
from web.errors import not_found
from web.frame import frame_of
from web.render import MORE, ConfirmContext, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.security import client, is_secure
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HERE = "/account/devices"
NAV = NavEntry(
    title="Devices",
    href=HERE,
    icon="out",
    order=42,
    under=MORE,
    about="Browsers and phones that get push notifications.",
)

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesContext(Context):
    """The list."""

    devices: Sequence[DeviceView] = described("the person's devices, the oldest first")
    key: PushKey = described("whether there is push on this server, and what it lacks")
    is_plain: bool = described("whether the page came without https from another machine: no browser does push then")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceContext(Context):
    """One device."""

    device: DeviceView = described("the device")
    name: str = described("its name, or what was typed")
    error: str = described("why the name was refused", default="")
    tested: str | None = described("what a test just found: '' when it was taken; None without a test", default=None)


@router.get(HERE)
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """The devices, and the way to add this one."""
    context = DevicesContext(
        frame=await frame_of(request, services, user, here=HERE),
        devices=await services.devices.list(user),
        key=await services.devices.key(),
        is_plain=not is_secure(request) and request.url.hostname not in LOOPBACK,
    )
    return respond(request, "devices.html", context)


@router.get(HERE + "/{device_id}")
async def show_one(request: Request, services: Services, user: CurrentUser, device_id: str) -> Response:
    """One device: its name, how it fares."""
    device = await _device(services, user, device_id)
    frame = await frame_of(request, services, user, here=HERE)
    return respond(request, "device.html", DeviceContext(frame=frame, device=device, name=device.name))


@router.post(HERE + "/{device_id}")
async def rename(request: Request, services: Services, user: CurrentUser, device_id: str, name: Text = "") -> Response:
    """Another name."""
    device = await _device(services, user, device_id)
    try:
        await services.devices.rename(user, device_id, name)
    except UserError as refused:
        frame = await frame_of(request, services, user, here=HERE)
        context = DeviceContext(frame=frame, device=device, name=name, error=refused.message)
        return respond(request, "device.html", context, status=422)
    return redirect(request, HERE, "Saved.")


@router.post(HERE + "/{device_id}/test")
async def test(request: Request, services: Services, user: CurrentUser, device_id: str) -> Response:
    """Push a test to it now; its page says what came of it."""
    tested = await services.devices.test(user, device_id)
    device = await _device(services, user, device_id)
    frame = await frame_of(request, services, user, here=HERE)
    return respond(request, "device.html", DeviceContext(frame=frame, device=device, name=device.name, tested=tested))


@router.get(HERE + "/{device_id}/remove")
async def ask_to_remove(request: Request, services: Services, user: CurrentUser, device_id: str) -> Response:
    """Asks before a device is told nothing more."""
    device = await _device(services, user, device_id)
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here=HERE),
        title=f"Remove {device.name}?",
        text="It gets no more notifications. You can add it again on the device.",
        action=f"{HERE}/{device_id}/remove",
        words="Remove",
        back=HERE,
    )
    return respond(request, "confirm.html", context)


@router.post(HERE + "/{device_id}/remove")
async def remove(request: Request, services: Services, user: CurrentUser, device_id: str) -> Response:
    """Nothing more goes there."""
    await services.devices.remove(user, device_id)
    return redirect(request, HERE, "Removed.")


# --- what push.js and the service worker ask


@router.get("/push/key")
async def key(services: Services, user: CurrentUser) -> Response:
    """The key to subscribe under; 422 with the reason when there is no push on this server."""
    found = await services.devices.key()
    if found.lacks:
        raise UserError(f"Push is not configured. {found.lacks}")
    return JSONResponse({"key": found.public})


@router.post("/push/subscribe")
async def subscribe(
    request: Request,
    services: Services,
    view: CurrentLogin,
    endpoint: Text = "",
    p256dh: Text = "",
    auth: Text = "",
    signed_for: Text = "",
    was: Text = "",
    device: Text = "",
) -> Response:
    """Keep this browser's subscription; its id.

    `device`: what the browser thinks it is. One that was removed from elsewhere stays so: the id is "" then, and the
    browser gives its subscription up.
    """
    if device and device not in [one.id for one in await services.devices.list(view.user)]:
        return JSONResponse({"id": ""})
    subscription = Subscription(endpoint=endpoint, p256dh=p256dh, auth=auth, signed_for=signed_for, instead_of=was)
    kept = await services.devices.subscribe(view, subscription, client(request)[1])
    return JSONResponse({"id": kept.id})


@router.post("/push/unsubscribe")
async def unsubscribe(services: Services, user: CurrentUser, endpoint: Text = "") -> Response:
    """This browser gave its subscription up."""
    await services.devices.unsubscribe(user, endpoint)
    return JSONResponse({})


@router.post("/push/ack")
async def shown(services: Services, user: CurrentUser, id: Text = "") -> Response:
    """The service worker showed this one; one of a device that was removed since is no error."""
    try:
        await services.devices.shown(user, id)
    except NotFound:
        return JSONResponse({"known": False})
    return JSONResponse({"known": True})


async def _device(services: Services, user: CurrentUser, device_id: str) -> DeviceView:
    for one in await services.devices.list(user):
        if one.id == device_id:
            return one
    raise not_found()
