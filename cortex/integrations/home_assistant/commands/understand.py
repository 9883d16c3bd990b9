"""The door of plain commands: what a message orders or asks for certain, of what a person may see and move.

English and German are read here; a sentence that is not known here is Home Assistant's to read. Each word of the
message has to be used, all readings have to agree, and what two entities could mean is neither.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec import Struct

from cortex.integrations.home_assistant.commands.answers import answer, looked
from cortex.integrations.home_assistant.commands.orders import WAYS, is_one_of_many, orders
from cortex.integrations.home_assistant.commands.readings import HomeMessage, OrderReading, heard, readings
from cortex.integrations.home_assistant.commands.sentences import HomeSentences, language_of
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.names import NameBook
from cortex.integrations.home_assistant.server import HomeTrouble
from cortex.integrations.home_assistant.words import EVERY, STATES, STOP, Kind, kinds, normal
from cortex.ports.home_assistant import HouseCommand

SENTENCE_S = 2.5  # from asking how the house stands to what the sentence means; then it is the model's
_ID = re.compile(r"[a-z_]{1,40}\.[a-z0-9_]{1,120}")  # ids stand in the call that a model reads later
_ASKS = "is are turned switched still ist sind noch est ce que qu elle il esta estan e sono zijn"
ASKS = frozenset(_ASKS.split())  # what stands beside the name and the state in a question


class PersonsCommands(Struct, frozen=True, kw_only=True):
    """Implements `HouseCommands` for one person.

    `named`: the house as it is now, and its names; `may`: what of it the person may see and move; `is_on`: the card's.
    """

    named: Callable[[], Awaitable[tuple[House, NameBook]]]
    may: Callable[[House], Callable[[HouseEntity], bool]]
    sentences: HomeSentences
    is_on: bool = True

    async def understand(self, text: str) -> HouseCommand | None:
        """Give what the text orders or asks for certain. Raises HomeTrouble where nobody knows how the house stands."""
        said = heard(text) if self.is_on else None
        if said is None:
            return None
        if is_known(said):
            house, book = await self.named()
            command, is_settled = found_here(said, house, book)
            if is_settled:
                return self._permitted(command, house)
        if self.sentences.is_resting:
            return None
        try:
            async with asyncio.timeout(SENTENCE_S):
                house, book = await self.named()
                if not self.sentences.is_worth_asking(said, book):
                    return None
                command = await self.sentences.meaning(said, house)
        except (TimeoutError, HomeTrouble) as error:
            self.sentences.rest(str(error) or "it took too long")
            return None
        return self._permitted(command, house)

    def _permitted(self, command: HouseCommand | None, house: House) -> HouseCommand | None:
        """The command, where this person may see and move all of it."""
        if command is None:
            return None
        may = self.may(house)
        ids = [*command.looks, *(id for one in command.orders for id in one.ids)]
        return command if all(_ID.fullmatch(id) and may(house.entities[id]) for id in ids) else None


def is_known(said: HomeMessage) -> bool:
    """Tell whether it sounds like an order or a question that is read here."""
    return next(readings(said), None) is not None or (said.is_asked and not STATES.keys().isdisjoint(said.line.split()))


def found_here(said: HomeMessage, house: House, book: NameBook) -> tuple[HouseCommand | None, bool]:
    """Give what the message says in words that are known here, and whether it is settled: then nobody else is asked."""
    language = language_of(said.line, house.language)
    found: dict[str, HouseCommand] = {}
    is_settled = False
    for reading in readings(said):
        ids, is_about = _targets(reading, house, book)
        is_settled |= is_about
        made = orders(reading, [house.entities[id] for id in ids]) if ids else ()
        if made:
            found[repr(made)] = HouseCommand(orders=made, done=answer(made, house, language))
    if found or is_settled:
        return (next(iter(found.values())) if len(found) == 1 else None), True
    return _state_question(said, house, book, language)


def _state_question(said: HomeMessage, house: House, book: NameBook, language: str) -> tuple[HouseCommand | None, bool]:
    """The answer to "is the garage door open?": names, a word for a state, and nothing else."""
    words = [word for word in said.line.split() if word not in ASKS]
    states = [word for word in words if word in STATES]
    target = " ".join(word for word in words if word not in STATES)
    if not said.is_asked or len(states) != 1 or not _says_which(target, book):
        return None, False
    meant = book.one(house, target, (), lambda _: True)
    entities = [house.entities[id] for id in meant.ids]
    command = looked(entities, house, language) if _is_whole(target, entities, book, house.entities.values()) else None
    return command, bool(meant.ids) or meant.is_ambiguous


def _targets(reading: OrderReading, house: House, book: NameBook) -> tuple[tuple[str, ...], bool]:
    """The ids that the reading's words name for certain, and whether they name anything that is here."""
    domains, target = frozenset(WAYS[reading.intent]), reading.target
    if reading.kind:
        domains &= {domain for kind in kinds(reading.kind) for domain in kind.domains | kind.called}
    is_place = not _says_which(target, book)
    last = target.split()[-1:]
    if last and last[0] in STOP and last[0] not in book.vocabulary:
        return (), False  # "turn off the kettle for": it is not said to its end
    if is_place and (not target or not reading.kind or not book.place(target)):
        return (), bool(target)
    words = f"{target} {reading.kind}" if is_place else target
    meant = book.one(house, words, domains, lambda _: True)
    is_vague = len(meant.ids) > 1 and (is_one_of_many(words) or (is_place and reading.kind != "lights"))
    entities = [house.entities[id] for id in meant.ids]
    able = [one for one in house.entities.values() if one.domain in domains]
    if is_vague or not all(_is_called(one, words) for one in entities) or not _is_whole(words, entities, book, able):
        return (), True
    return tuple(sorted(meant.ids)), bool(meant.ids) or meant.is_ambiguous


def _is_called(one: HouseEntity, words: str) -> bool:
    """Tell whether a kind at the end of the words is what it is, or what it is called: a fan light is no fan."""
    said = [word for word in words.split() if word not in STOP and word not in EVERY]
    if not kinds(said[-1]) or _fits(one, kinds(said[-1])):
        return True
    names = [normal(name).split() for name in (one.name, *one.aliases)]
    is_named = any(name[-1:] == said[-1:] for name in names)
    return said in names or (is_named and any(not kinds(word) or _fits(one, kinds(word)) for word in said))


def _is_whole(words: str, entities: Sequence[HouseEntity], book: NameBook, able: Iterable[HouseEntity]) -> bool:
    """Tell whether words that name only a kind mean all that are of it, or called so: "shutters up" is not one."""
    said = [word for word in words.split() if word not in STOP and word not in EVERY]
    if not all(map(kinds, said)) or any(map(book.place, words.split())):
        return True
    alike = [
        one
        for one in able
        if one.is_shown and all(word in normal(one.name).split() or _fits(one, kinds(word)) for word in said)
    ]
    return len(alike) == len(entities)


def _fits(one: HouseEntity, alike: Iterable[Kind]) -> bool:
    return any(kind.fits(one) for kind in alike)


def _says_which(target: str, book: NameBook) -> bool:
    """Tell whether the words name a thing or a kind, and not only a place, or "everything"."""
    words = [word for word in target.split() if word not in EVERY]
    is_place = book.place(" ".join(words)) is not None and not any(map(kinds, words))
    return bool([word for word in words if word not in STOP]) and not is_place
