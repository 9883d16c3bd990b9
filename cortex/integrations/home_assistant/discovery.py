"""Looks for Home Assistants in the network by mDNS, when an admin asks for it: never at the start, never by itself.

What is found is shown as an address to choose; nothing is connected to.
"""

import asyncio

from msgspec import Struct
from zeroconf import IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from cortex.base.errors import UserError
from cortex.integrations.home_assistant.registries import plain

TYPE = "_home-assistant._tcp.local."
LOOK_S = 3.0
DETAIL_MS = 1_500
MOST = 10


class FoundHome(Struct, frozen=True, kw_only=True):
    """A Home Assistant that announces itself: its name is what somebody in the network wrote."""

    name: str
    address: str
    version: str


async def homes_in_network(*, look_s: float = LOOK_S, interfaces: tuple[str, ...] = ()) -> list[FoundHome]:
    """Those that answered within the time, by name; none where there are none. UserError where it can't be asked.

    interfaces: addresses of this machine to ask on; all of them when empty.
    """
    heard: list[str] = []

    def hear(zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        if state_change is not ServiceStateChange.Removed and name not in heard and len(heard) < MOST:
            heard.append(name)

    try:
        opened = (
            AsyncZeroconf(interfaces=list(interfaces), ip_version=IPVersion.V4Only) if interfaces else AsyncZeroconf()
        )
    except OSError as error:
        words = "This machine's network cannot be searched (a container needs the host's network for it)."
        raise UserError(f"{words} Enter the address instead.") from error
    try:
        browser = AsyncServiceBrowser(opened.zeroconf, TYPE, handlers=[hear])
        await asyncio.sleep(look_s)
        await browser.async_cancel()
        infos = [AsyncServiceInfo(TYPE, name) for name in heard]
        await asyncio.gather(*(one.async_request(opened.zeroconf, DETAIL_MS) for one in infos))
    finally:
        await opened.async_close()
    return sorted((found for one in infos if (found := _found(one)) is not None), key=lambda one: one.name)


async def found_in_network() -> str:
    """The same in a sentence for the card; UserError where there is none."""
    homes = await homes_in_network()
    if not homes:
        raise UserError("No Home Assistant was found in this network. Enter its address.")
    named = (f"{one.name} at {one.address}{f' ({one.version})' if one.version else ''}" for one in homes)
    return f"Found: {'; '.join(named)}. Copy the address."


def _found(info: AsyncServiceInfo) -> FoundHome | None:
    addresses = info.parsed_addresses(IPVersion.V4Only)
    if not addresses or not info.port:
        return None
    facts = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in info.properties.items()
        if isinstance(key, bytes) and isinstance(value, bytes)
    }
    told = facts.get("internal_url", "").rstrip("/")
    own = told if told.startswith(("http://", "https://")) else f"http://{addresses[0]}:{info.port}"
    name = plain(facts.get("location_name")) or plain(info.name.removesuffix(f".{TYPE}"))
    return FoundHome(name=name or "Home Assistant", address=plain(own), version=plain(facts.get("version"))[:20])
