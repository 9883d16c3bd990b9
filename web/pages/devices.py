"""Devices that take push: their list, adding this one, names, tests, removal; and what scripts ask under `/push`."""

from collections.abc import Sequence

from fastapi.responses import JSONResponse, Response

from cortex.base.errors import NotFound, UserError
from cortex.services.notices.devices import DeviceView, Subscription
from web.deps import Text
from web.errors import not_found
from web.render import MORE, Context, NavEntry, described
from web.routes import PageRouter
from web.security import client, is_secure
from web.visit import UserVisit, Visit

router = PageRouter()
HERE = "/account/devices"
NAV = NavEntry(
    title="Devices",
    href=HERE,
    icon="phone",
    order=42,
    under=MORE,
    about="Browsers and phones that get push notifications.",
)

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class DevicesContext(Context, frozen=True, kw_only=True):
    """The list."""

    devices: Sequence[DeviceView] = described("the person's devices, the oldest first")
    is_plain: bool = described("whether the page came without https from another machine: no browser does push then")


class DeviceContext(Context, frozen=True, kw_only=True):
    """One device."""

    device: DeviceView = described("the device")
    name: str = described("its name, or what was typed")
    tested: str | None = described("what a test just found: '' when it was taken; None without a test", default=None)


@router.get(HERE)
async def show(visit: UserVisit) -> Response:
    """The devices, and the way to add this one."""
    context = DevicesContext(
        devices=await visit.services.devices.list(visit.user),
        is_plain=not is_secure(visit.request) and visit.request.url.hostname not in LOOPBACK,
    )
    return await visit.show("devices.html", context)


@router.get(HERE + "/{device_id}")
async def show_one(visit: UserVisit, device_id: str) -> Response:
    """One device: its name, how it fares."""
    device = await _device(visit, device_id)
    return await visit.show("device.html", DeviceContext(device=device, name=device.name))


@router.post(HERE + "/{device_id}")
async def rename(visit: UserVisit, device_id: str, name: Text = "") -> Response:
    """Another name."""
    device = await _device(visit, device_id)
    try:
        await visit.services.devices.rename(visit.user, device_id, name)
    except UserError as refused:
        context = DeviceContext(device=device, name=name)
        return await visit.show("device.html", context, refused=refused)
    return visit.redirect(HERE, "Saved.")


@router.post(HERE + "/{device_id}/test")
async def test(visit: UserVisit, device_id: str) -> Response:
    """Push a test to it now; its page says what came of it."""
    tested = await visit.services.devices.test(visit.user, device_id)
    device = await _device(visit, device_id)
    return await visit.show("device.html", DeviceContext(device=device, name=device.name, tested=tested))


@router.get(HERE + "/{device_id}/remove")
async def ask_to_remove(visit: UserVisit, device_id: str) -> Response:
    """Asks before a device is told nothing more."""
    device = await _device(visit, device_id)
    return await visit.ask(
        title=f"Remove {device.name}?",
        text="It gets no more notifications. You can add it again on the device.",
        action=f"{HERE}/{device_id}/remove",
        words="Remove",
        back=HERE,
    )


@router.post(HERE + "/{device_id}/remove")
async def remove(visit: UserVisit, device_id: str) -> Response:
    """Nothing more goes there."""
    await visit.services.devices.remove(visit.user, device_id)
    return visit.redirect(HERE, "Removed.")


# --- what push.js and the service worker ask


@router.get("/push/key")
async def key(visit: UserVisit) -> Response:
    """The key to subscribe under."""
    return JSONResponse({"key": await visit.services.devices.key()})


@router.post("/push/subscribe")
async def subscribe(
    visit: UserVisit,
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
    if device and device not in [one.id for one in await visit.services.devices.list(visit.user)]:
        return JSONResponse({"id": ""})
    subscription = Subscription(endpoint=endpoint, p256dh=p256dh, auth=auth, signed_for=signed_for, instead_of=was)
    kept = await visit.services.devices.subscribe(visit.login, subscription, client(visit.request)[1])
    return JSONResponse({"id": kept.id})


@router.post("/push/unsubscribe")
async def unsubscribe(visit: UserVisit, endpoint: Text = "") -> Response:
    """This browser gave its subscription up."""
    await visit.services.devices.unsubscribe(visit.user, endpoint)
    return JSONResponse({})


@router.post("/push/ack")
async def shown(visit: UserVisit, id: Text = "") -> Response:
    """The service worker showed this one; one of a device that was removed since is no error."""
    try:
        await visit.services.devices.shown(visit.user, id)
    except NotFound:
        return JSONResponse({"known": False})
    return JSONResponse({"known": True})


async def _device(visit: Visit, device_id: str) -> DeviceView:
    for one in await visit.services.devices.list(visit.user):
        if one.id == device_id:
            return one
    raise not_found()
