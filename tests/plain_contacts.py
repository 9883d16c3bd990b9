"""Contacts in memory: what `services/contacts` gives of a person's address books, to find people by."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cortex.ports.contacts import Contact, ContactBook, ContactValue

BOOK = ContactBook(id="book", name="People", access="write")
SHARED = ContactBook(id="shared", name="People", owner="Ben")


def person(name: str, *emails: str, book: ContactBook = BOOK, nickname: str = "", birthday: str = "") -> Contact:
    """Somebody with these addresses, each perhaps as `home:ada@example.org`."""
    values = [ContactValue(value=one.rpartition(":")[2], label=one.rpartition(":")[0]) for one in emails]
    id = f"{name.casefold().replace(' ', '')}000001"
    return Contact(id=id, book=book, name=name, nickname=nickname, emails=values, birthday=birthday)


@dataclass
class PlainContacts:
    """These people; nobody at first."""

    people: list[Contact] = field(default_factory=list)

    async def books(self) -> Sequence[ContactBook]:
        return [BOOK, SHARED]

    async def find(self, words: str, *, most: int = 20, offset: int = 0) -> Sequence[Contact]:
        wanted = words.casefold().split()
        return [one for one in self.people if all(word in self._text(one) for word in wanted)][offset : offset + most]

    async def count(self, words: str = "") -> int:
        return len(await self.find(words, most=10_000))

    async def of_id(self, end: str) -> Sequence[Contact]:
        return [one for one in self.people if one.id.endswith(end)]

    async def born_on(self, days: Sequence[str]) -> Sequence[Contact]:
        return [one for one in self.people if one.birthday[-5:] in days]

    def _text(self, one: Contact) -> str:
        return " ".join([one.name, one.nickname, *(value.value for value in one.emails)]).casefold()
