"""A server in memory, with one calendar and one address book of one person: what `integrations/dav` gives of one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cortex.base.errors import Conflict, NotFound
from cortex.integrations.dav.values import Account, Changed, Collection, CollectionChanges, Resource

HOME = "https://dav.example.org/ann/home/"
PEOPLE = "https://dav.example.org/ann/people/"


@dataclass
class PlainDav:
    """Its resources with their versions, by address; each write has a version of its own."""

    resources_by_url: dict[str, tuple[str, str]] = field(default_factory=dict)
    writes: int = 0
    can_write: bool = True

    def hold(self, name: str, *lines: str) -> None:
        """Have an appointment there, as another program wrote it."""
        body = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Phone//EN", *lines, "END:VCALENDAR", ""])
        self._write(f"{HOME}{name}.ics", body)

    def hold_card(self, name: str, *lines: str) -> None:
        """Have a contact there, as another program wrote it."""
        body = "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", f"UID:{name}", *lines, "END:VCARD", ""])
        self._write(f"{PEOPLE}{name}.vcf", body)

    async def account(self) -> Account:
        return Account(
            collections=[
                Collection(url=HOME, name="Home", can_write=self.can_write),
                Collection(url=PEOPLE, name="People", is_contacts=True),
            ],
            addresses=["ada@example.org"],
        )

    async def changes(self, url: str, token: str) -> CollectionChanges:
        held = self.resources_by_url.items()
        found = [Changed(href=href, etag=etag) for href, (etag, _) in held if href.startswith(url)]
        return CollectionChanges(changed=found, is_all=True)

    async def resources(self, url: str, kind: str, hrefs: Sequence[str]) -> Sequence[Resource]:
        return [await self.get(href) for href in hrefs if href in self.resources_by_url]

    async def get(self, url: str, *, most_bytes: int = 1_000_000) -> Resource:
        if url not in self.resources_by_url:
            raise NotFound("There is no such appointment.")
        etag, data = self.resources_by_url[url]
        return Resource(href=url, etag=etag, data=data)

    async def put(self, url: str, data: str, *, media: str, etag: str) -> str:
        self._must_be(url, etag)
        return self._write(url, data)

    async def delete(self, url: str, *, etag: str) -> None:
        if url in self.resources_by_url:
            self._must_be(url, etag)
            self.writes += 1
            del self.resources_by_url[url]

    async def close(self) -> None:
        """Nothing is open."""

    def _must_be(self, url: str, etag: str) -> None:
        if self.resources_by_url.get(url, ("", ""))[0] != etag:
            raise Conflict("It was changed meanwhile.")

    def _write(self, url: str, data: str) -> str:
        self.writes += 1
        self.resources_by_url[url] = (f'"{self.writes}"', data)
        return f'"{self.writes}"'
