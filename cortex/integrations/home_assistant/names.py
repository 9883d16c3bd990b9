"""Finds what a person's words name: ids, names, aliases, rooms and floors with kinds of devices, labels, "all", typos.

Certain or near, never a guess. Built once for each edition of the house; what is not allowed is not there at all.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from msgspec import Struct, field

from cortex.base import spelling
from cortex.integrations.home_assistant import words as table
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.words import (
    ALL_OF,
    EVERY,
    JOINS,
    LINKS,
    NOT,
    ONE_OF,
    SAME_ROOM,
    STATES,
    STOP,
    normal,
)

NEAR = 6
NEAR_SCORE = 62.0
BATCH = 250
MOST_CHARACTERS = 8_000
MOST_WORDS = 24
PARTS = 12
ONE_SLIP, TWO_SLIPS = 6, 10  # letters that a word must have before one or two wrong ones are forgiven

Tokens = tuple[str, ...]
Allowed = Callable[[HouseEntity], bool]


class Meant(Struct, frozen=True, kw_only=True):
    """Ids that the words certainly mean, or none and those that come `near`, best first.

    `is_ambiguous`: those fit all of the words, and nobody knows which of them is meant.
    """

    ids: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    is_ambiguous: bool = False


class NamedPlace(Struct, frozen=True, kw_only=True):
    """The cover of a place word: rooms, and what bears one of these labels."""

    areas: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()

    def holds(self, one: HouseEntity) -> bool:
        """Tell whether the entity is there."""
        return one.area_id in self.areas or not self.labels.isdisjoint(one.labels)


class Known(Struct, frozen=True, kw_only=True):
    """The words by which one entity is known: each of its names, and where it is."""

    names: tuple[frozenset[str], ...]
    around: frozenset[str]


class NameBook(Struct, kw_only=True):
    """The names of one edition of the house. Make it with `name_book`."""

    exact: dict[str, list[str]] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    places: dict[Tokens, NamedPlace] = field(default_factory=dict)
    vocabulary: set[str] = field(default_factory=set)

    def resolve(self, house: House, words: str, domains: Collection[str], allowed: Allowed) -> Meant:
        """Return what the words mean within these domains (none given: any), lists included."""
        text = words.strip()[:MOST_CHARACTERS]
        scope = _Scope(self, house, domains, allowed)
        whole = scope.one(text)
        parts = [part for part in JOINS.split(text) if part]
        if whole.ids or not 1 < len(parts) <= PARTS:
            return whole
        each = [scope.one(part) for part in parts]
        if all(one.ids for one in each):
            return Meant(ids=tuple(dict.fromkeys(id for one in each for id in one.ids)))
        missing = (id for one in each if not one.ids for id in one.near)
        return Meant(near=tuple(dict.fromkeys(missing))[:NEAR])

    def one(self, house: House, words: str, domains: Collection[str], allowed: Allowed) -> Meant:
        """Return what one name, room or kind of device means; a list of them means nothing."""
        return _Scope(self, house, domains, allowed).one(words)

    def place(self, words: str) -> NamedPlace | None:
        """The room, floor or label that the words are, and nothing else."""
        return self.places.get(_tokens(words, self.vocabulary))

    def find(self, house: House, words: str, domain: str, area: str, allowed: Allowed) -> list[str]:
        """Ids of all that fit, best first; an empty word narrows nothing."""
        scope = _Scope(self, house, (), allowed)
        rows: Iterable[HouseEntity] = (one for one in scope.entities.values() if one.is_shown)
        kinds = table.kinds(normal(domain)) if domain else ()
        if domain and not any(one.domain == domain for one in scope.entities.values()) and kinds:
            rows = [one for one in rows if any(kind.fits(one) for kind in kinds)]
        elif domain:
            rows = [one for one in rows if one.domain == domain]
        if area:
            place = scope.place(_tokens(area, self.vocabulary))
            rows = [one for one in rows if place is not None and place.holds(one)]
        said = [token for token in normal(words).split() if token in STATES or token not in STOP]
        tokens = [scope.spelled(token) or token for token in said]
        scored = [(score, one.name, one.id) for one in rows if (score := self._score(one, tokens)) is not None]
        return [id for _, _, id in sorted(scored)]

    def _score(self, one: HouseEntity, tokens: Sequence[str]) -> int | None:
        """Return how well it fits all of these words, small is good; None when one of them fits nothing of it."""
        known, score = self.known[one.id], 0
        for token in tokens:
            if any(token in name for name in known.names):
                continue
            if one.state in STATES.get(token, ()) or normal(one.state) == token:
                score += 1
            elif token in known.around or any(kind.fits(one) for kind in table.kinds(token)):
                score += 2
            elif any(word.startswith(token) or (len(token) > 3 and token in word) for n in known.names for word in n):
                score += 3
            else:
                return None
        return score


async def name_book(house: House) -> NameBook:
    """The names of this house; others get their turn while it is made."""
    book = NameBook()
    for area in house.areas.values():
        for name in (area.name, *area.aliases):
            _add_place(book, name, NamedPlace(areas=frozenset({area.id})))
    for floor in house.floors.values():
        on_it = frozenset(area.id for area in house.areas.values() if area.floor_id == floor.id)
        for name in (floor.name, *floor.aliases):
            _add_place(book, name, NamedPlace(areas=on_it))
    for id, name in house.labels.items():
        _add_place(book, name, NamedPlace(labels=frozenset({id})))
    _add_other_words(book, house)
    around = {area.id: _around(house, area.id) for area in house.areas.values()}
    for number, one in enumerate(house.entities.values()):
        _add(book, one, around.get(one.area_id, frozenset()))
        if number % BATCH == BATCH - 1:
            await asyncio.sleep(0)
    return book


class _Scope:
    """One question to the book: by one person, within some domains."""

    def __init__(self, book: NameBook, house: House, domains: Collection[str], allowed: Allowed) -> None:
        self._book, self._house, self._domains, self._allowed = book, house, domains, allowed
        self._has_domains = bool(domains)

    @cached_property
    def entities(self) -> Mapping[str, HouseEntity]:
        """All that the question may be about; ids are looked up without it: it goes through the whole house."""
        return {one.id: one for one in self._house.entities.values() if self._has(one)}

    def _has(self, one: HouseEntity | None) -> bool:
        return (
            one is not None
            and (not self._domains or one.domain in self._domains)
            and one.id in self._book.known
            and self._allowed(one)
        )

    def one(self, text: str) -> Meant:
        """Return what one name, room or list of ids means."""
        ids = text.replace(",", " ").split()
        if ids and all("." in id for id in ids):
            found = tuple(dict.fromkeys(id.casefold() for id in ids))
            if all(self._has(self._house.entities.get(id)) for id in found):
                return Meant(ids=found)
        key = normal(text)
        if hits := self._exact(key):
            return hits
        tokens = _tokens(text, self._book.vocabulary)
        if not tokens or len(tokens) > MOST_WORDS:
            return Meant()
        if hits := self._exact(" ".join(tokens)):
            return hits
        spelled = [self.spelled(token) for token in self._compounds(tokens)]
        said = tuple(token for token in spelled if token)
        is_clear = len(said) == len(spelled) and NOT.isdisjoint(tokens)
        if is_clear and ((meant := self._of_place(said)) or (meant := self._by_words(said))):
            return meant
        return Meant(near=self._near(key, said))

    def place(self, tokens: Tokens) -> NamedPlace | None:
        """The room, floor or label of exactly these words, a slip of the keys allowed."""
        spelled = tuple(self.spelled(token) or token for token in tokens)
        return self._book.places.get(spelled) or self._book.places.get(("".join(spelled),))

    def spelled(self, token: str) -> str:
        """The token as the house or the table writes it; "" where no word, or more than one, comes near enough."""
        vocabulary = self._book.vocabulary
        if token in vocabulary or token in EVERY or token in STATES or table.kinds(token) or token.isdigit():
            return token
        folded = _folded(token)
        fits = {word for word in vocabulary if _folded(word) == folded} if folded != token else set()
        fits = fits or {word for word in vocabulary if _folded(word) == token}
        slips = 2 if len(token) >= TWO_SLIPS else 1 if len(token) >= ONE_SLIP else 0
        if not fits and slips and token.isalpha():
            every = vocabulary | ALL_OF.keys() | ONE_OF.keys()
            near = {word: spelling.slips(token, word) for word in every if _is_like(word, token)}
            least = min(near.values(), default=slips + 1)
            fits = {word for word, far in near.items() if far == least <= slips}
        return fits.pop() if len(fits) == 1 else ""

    def _exact(self, key: str) -> Meant | None:
        """Return what bears exactly this name: one, or for a look in any domain all of them."""
        ids = [id for id in self._book.exact.get(key, ()) if id in self.entities]
        shown = [id for id in ids if self.entities[id].is_shown] or ids
        if len(shown) == 1 or (shown and not self._has_domains):
            return Meant(ids=tuple(shown))
        return Meant(near=tuple(shown[:NEAR]), is_ambiguous=True) if shown else None

    def _of_place(self, tokens: Tokens) -> Meant | None:
        """A place, a kind of device, both, or "all": what is shown of it. A kind without a place is the only one."""
        rest, place = self._without_place(tokens)
        is_every = any(token in EVERY for token in rest)
        named = [token for token in rest if token not in EVERY]
        if not all(table.kinds(token) for token in named):
            return None
        fitting = [
            one
            for one in self.entities.values()
            if one.is_shown
            and (place is None or place.holds(one))
            and all(any(kind.fits(one) for kind in table.kinds(token)) for token in named)
        ]
        ids = tuple(one.id for one in fitting)
        if not ids:
            return None
        are_many = is_every or (place is not None and all(token in ALL_OF for token in named))
        return Meant(ids=ids) if are_many or len(ids) == 1 else Meant(near=ids[:NEAR], is_ambiguous=True)

    def _without_place(self, tokens: Tokens) -> tuple[Tokens, NamedPlace | None]:
        """The tokens without the longest place among them, and that place."""
        for length in range(min(len(tokens), 5), 0, -1):
            for at in range(len(tokens) - length + 1):
                span = tokens[at : at + length]
                place = self._book.places.get(span) or (self._book.places.get(("".join(span),)) if length > 1 else None)
                if place is not None:
                    return (*tokens[:at], *tokens[at + length :]), place
        return tokens, None

    def _by_words(self, tokens: Tokens) -> Meant | None:
        """The one whose names, room and kind hold every word, and all of whose own words are said."""
        said = set(tokens)
        held, full = [], []
        for one in self.entities.values():
            known = self._book.known[one.id]
            own = {token for token in said if any(kind.fits(one) for kind in table.kinds(token))}
            names = [name for name in known.names if said <= name | known.around | own and said & name]
            if not one.is_shown or not names:
                continue
            held.append(one.id)
            if any(_own(name, one) - known.around <= said for name in names):
                full.append(one.id)
        if len(full) == 1 == len(held):
            return Meant(ids=(full[0],))
        ranked = tuple(dict.fromkeys((*full, *held)))
        return Meant(near=ranked[:NEAR], is_ambiguous=True) if ranked else None

    def _near(self, key: str, said: Tokens) -> tuple[str, ...]:
        shown = (one for one in self.entities.values() if one.is_shown)
        wanted = " ".join(said) or key
        return spelling.best_of(
            ((spelling.shared_words(wanted, normal(one.name)), one.id) for one in shown), NEAR, NEAR_SCORE
        )

    def _compounds(self, tokens: Tokens) -> list[str]:
        """The tokens with compounds of a place and a kind taken apart: kuchenlicht -> kuche licht."""
        found: list[str] = []
        for token in tokens:
            found += [token] if token in self._book.vocabulary or table.kinds(token) else self._apart(token)
        return found

    def _apart(self, token: str) -> list[str]:
        for word, span in (
            (word, span) for word in dict.fromkeys((token, _folded(token))) for span in self._book.places
        ):
            if len(span) == 1 and len(span[0]) > 2 and word.startswith(span[0]):
                rest = word[len(span[0]) :]
                for link in LINKS:
                    if rest.startswith(link) and table.kinds(rest[len(link) :]):
                        return [span[0], rest[len(link) :]]
        return [token]


def _tokens(text: str, own: Collection[str] = ()) -> Tokens:
    """The words that tell something. own: the house's words, of which an article may be one: a room called Den."""
    key = normal(text)
    for article in ("a ", "an "):
        key = key.removeprefix(article)
    every = key.split()
    return tuple(token for token in every if token not in STOP or token in own) or tuple(every)


def _own(name: frozenset[str], one: HouseEntity) -> set[str]:
    """The words of a name that tell more than the kind of device that it is."""
    return {word for word in name if not any(kind.fits(one) for kind in table.kinds(word))}


def _folded(token: str) -> str:
    """As somebody without umlauts may write it: kueche and kuche are one."""
    return token.replace("ae", "a").replace("oe", "o").replace("ue", "u")


def _is_like(word: str, token: str) -> bool:
    return len(word) >= ONE_SLIP - 1 and word[0] == token[0] and abs(len(word) - len(token)) <= 2 and word.isalpha()


def _around(house: House, area_id: str) -> frozenset[str]:
    area = house.areas[area_id]
    floor = house.floors.get(area.floor_id)
    names = [area.name, *area.aliases, *((floor.name, *floor.aliases) if floor is not None else ())]
    return frozenset(token for name in names for token in _tokens(name))


def _add_place(book: NameBook, name: str, place: NamedPlace) -> None:
    tokens = _tokens(name)
    if not tokens:
        return
    for span in {tokens, ("".join(tokens),)}:
        old = book.places.get(span, _NOWHERE)
        book.places[span] = NamedPlace(areas=old.areas | place.areas, labels=old.labels | place.labels)
    book.vocabulary.update(tokens, ("".join(tokens),), (first + second for first, second in pairwise(tokens)))


def _add_other_words(book: NameBook, house: House) -> None:
    """Call rooms with usual names by the words of the other languages too, where these mean one room only."""
    meant: dict[str, set[str]] = {}
    for area in house.areas.values():
        for name in (area.name, *area.aliases):
            for word in SAME_ROOM.get(normal(name), ()):
                meant.setdefault(word, set()).add(area.id)
    own = set(book.places)
    for word, areas in meant.items():
        if len(areas) == 1 and _tokens(word) not in own:
            _add_place(book, word, NamedPlace(areas=frozenset(areas)))


_NOWHERE = NamedPlace()


def _add(book: NameBook, one: HouseEntity, around: frozenset[str]) -> None:
    names = (one.name, *one.aliases)
    object_id = one.id.partition(".")[2]
    for key in dict.fromkeys((one.id, normal(one.id), normal(object_id), *map(normal, names))):
        if key:
            book.exact.setdefault(key, []).append(one.id)
    each = tuple(dict.fromkeys(frozenset(_tokens(name)) for name in names))
    book.known[one.id] = Known(names=each, around=around | frozenset(_tokens(one.device)))
    for name in each:
        book.vocabulary |= name
