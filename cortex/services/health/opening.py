"""How others open Cortex: the way that is in force, its address, and what was seen of it. For the set-up page.

It changes no setting: `changes` says which a way needs, and the page hands them to whoever keeps settings.
"""

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import UserError
from cortex.base.settings import PREFIX, Settings
from cortex.base.user import User
from cortex.services.health.finding import proxy_finding
from cortex.storage.accounts import AllLoginsRepository
from cortex.storage.db import Database
from cortex.storage.preferences import AllPreferencesRepository, PreferencesRepository

Way = Literal["here", "network", "anywhere"]
OPENED = "first_steps.opened"  # where this person was seen to open it, when, and with which browser
HERE_ALONE = "first_steps.here_alone"  # this person wants nobody else to open it
ELSEWHERE = ("192.0.2.1", 9)  # for documents alone (RFC 5737): the system only picks the way there
THIS_MACHINE = ("", "127.0.0.1", "::1")
_NAME = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


def own_address() -> str:
    """The IPv4 address by which others in the network reach this machine, "" where there is none. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(ELSEWHERE)
        except OSError:
            return ""
        address: str = asking.getsockname()[0]
    return "" if address.startswith(("127.", "0.")) else address


class Opening(Struct, frozen=True, kw_only=True):
    """The way in force. `works`: it was chosen and seen to work, `at` that time, by the browser `agent`.

    `address`: as others type it, "" where nobody else can open it.
    """

    way: Way
    address: str
    works: bool = False
    at: datetime | None = None
    agent: str = ""


class OpeningService(Struct, frozen=True, kw_only=True):
    """Looks at settings, logins, and what was noted."""

    db: Database
    settings: Settings
    clock: Clock
    own_address: Callable[[], str] = own_address

    @property
    def way(self) -> Way:
        """The way that the settings in force make."""
        if self.settings.public_url.startswith("https://"):
            return "anywhere"
        return "here" if self.settings.is_private else "network"

    def address(self, way: Way, port: int) -> str:
        """Where others open it by this way; `port`: the one that is listened on. "" where that is not known."""
        if way == "anywhere":
            return self.settings.public_url
        found = self.own_address() if way == "network" else ""
        return f"http://{found}:{port}" if found else ""

    async def look(self, port: int) -> Opening:
        """The way in force, and whether it works."""
        way = self.way
        address = self.address(way, port)
        if way == "here":
            is_chosen = bool(await self.db.repository(AllPreferencesRepository).owners(HERE_ALONE))
            return Opening(way=way, address=address, works=is_chosen)
        noted = await self._noted(address)
        if noted is not None:
            at = datetime.fromisoformat(noted["at"])
            return Opening(way=way, address=address, works=True, at=at, agent=noted["agent"])
        login = (
            await self.db.repository(AllLoginsRepository).newest_but_from(THIS_MACHINE) if way == "network" else None
        )
        if login is None:
            return Opening(way=way, address=address)
        return Opening(way=way, address=address, works=True, at=login.seen_at, agent=login.agent)

    async def note(self, user: User, origin: str, agent: str) -> bool:
        """Note that this person opened it at `origin`; False where that is not the https address in force."""
        if origin != self.settings.public_url or self.way != "anywhere":
            return False
        kept = await self.db.repository(PreferencesRepository, user.id).get(OPENED)
        if not kept or kept["origin"] != origin:
            await self._keep(user, agent)
        return True

    async def test(self, user: User) -> Sequence[str]:
        """Ask the https address for itself: what is missing, a sentence each; nothing where it works."""
        found = await proxy_finding(self.settings.public_url)
        if found.state == "good":
            await self._keep(user, "")
            return ()
        return tuple(filter(None, (found.text, found.mend)))

    async def stay_here(self, user: User) -> None:
        """Note that nobody else is to open it."""
        await self.db.repository(PreferencesRepository, user.id).set(HERE_ALONE, True)

    def changes(self, way: Way, name: str = "") -> Mapping[str, str | None]:
        """The settings that a way needs; None: as without a page.

        UserError for a name that is none, and where what was given outside says otherwise.
        """
        wanted: dict[str, str | None] = {"host": None, "allow_plain_http": None, "public_url": None}
        if way == "network":
            wanted |= {"host": "0.0.0.0", "allow_plain_http": "lan"}  # noqa: S104 - it is asked for
        if way == "anywhere":
            wanted["public_url"] = f"https://{_host(name)}"
            if not self.settings.trusted_proxies:
                wanted["trusted_proxies"] = "127.0.0.1"
        given = sorted({*wanted} & self.settings.model_fields_set)
        is_changed = way != self.way or wanted["public_url"] not in (None, self.settings.public_url)
        if is_changed and given:
            raise UserError(f"{PREFIX}{given[0].upper()} is set outside, which wins. Change it there.")
        return wanted

    async def _noted(self, origin: str) -> Mapping[str, str] | None:
        """Return the newest note of anybody that it was opened there."""
        found = []
        for owner_id in await self.db.repository(AllPreferencesRepository).owners(OPENED):
            kept: Mapping[str, str] = await self.db.repository(PreferencesRepository, owner_id).get(OPENED)
            found += [kept] if kept["origin"] == origin else []
        return max(found, key=lambda one: one["at"], default=None)

    async def _keep(self, user: User, agent: str) -> None:
        seen = {"origin": self.settings.public_url, "at": self.clock().isoformat(), "agent": agent}
        await self.db.repository(PreferencesRepository, user.id).set(OPENED, seen)


def _host(name: str) -> str:
    """The host name that was typed, perhaps as an address. UserError where it is none."""
    host = name.strip().lower().removeprefix("https://").rstrip("/")
    if not _NAME.fullmatch(host.partition(":")[0]):
        raise UserError("Write a host name, such as cortex.example.org.", field="name")
    return host
