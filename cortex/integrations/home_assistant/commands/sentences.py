"""What a sentence means to Home Assistant itself, in its sixty languages and with the house's own sentences.

It is asked without doing anything (`debug`, for any account). Which entities are meant is worked out here, from its
slots: its own targets can be empty, and name what is not shown. Only a whole match counts, and no guess of it.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cortex.base.clock import ticks_s
from cortex.integrations.home_assistant.client import HomeClient
from cortex.integrations.home_assistant.commands.answers import answer as answer_to
from cortex.integrations.home_assistant.commands.answers import looked
from cortex.integrations.home_assistant.commands.orders import WAYS, is_one_of_many, orders
from cortex.integrations.home_assistant.commands.phrases import EVERYTHING
from cortex.integrations.home_assistant.commands.readings import HomeMessage, OrderReading
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.names import NameBook
from cortex.integrations.home_assistant.server import HomeRefusal
from cortex.integrations.home_assistant.words import EVERY, kinds, normal
from cortex.ports.home_assistant import HouseCommand

DEBUG = "conversation/agent/homeassistant/debug"
SHORT_WORDS = 5  # so short a sentence may be one of the house's own, and name nothing
SLOW_S = 0.5  # a house that answers later is asked only what names something of it
REST_S = 60.0  # a house that answered too late is not asked again for so long: the model is
LACKS_REST_S = 900.0
NUMBER_MAX = 10_000
log = logging.getLogger(__name__)

# Intent of Home Assistant: ours, and the slot that holds its value.
INTENTS = {
    "HassTurnOn": ("hass_on", ""),
    "HassTurnOff": ("hass_off", ""),
    "HassToggle": ("toggle", ""),
    "HassOpenCover": ("open", ""),
    "HassCloseCover": ("close", ""),
    "HassStopMoving": ("stop", ""),
    "HassSetPosition": ("percent", "position"),
    "HassFanSetSpeed": ("percent", "percentage"),
    "HassClimateSetTemperature": ("degrees", "temperature"),
    "HassMediaPause": ("pause", ""),
    "HassMediaUnpause": ("play", ""),
    "HassMediaNext": ("next", ""),
    "HassMediaPrevious": ("previous", ""),
    "HassSetVolume": ("volume", "volume_level"),
    "HassVacuumStart": ("start", ""),
    "HassVacuumReturnToBase": ("dock", ""),
}
LIGHT = {"brightness": "percent", "temperature": "kelvin", "color": "colour"}  # HassLightSet: by its slot
READ_HERE = ("en", "de")  # in these it is known here what asks: Home Assistant passes over a question mark
LOOKS = ("HassGetState", "HassClimateGetTemperature")
WHICH = frozenset({"name", "area", "floor", "domain", "device_class"})
_MARKS = {
    "en": "the turn switch is are what please of set open close my in lights light",
    "de": "der die das den dem ist sind schalte schalt mach stell starte bitte im in am auf aus an ein",
    "fr": "le la les l du de des d est allume allumer eteins eteindre ouvre ferme mets regle demarre renvoie quelle",
    "es": "el la los las de del al enciende encender apaga apagar abre cierra pon esta cual ajusta sube baja manda",
    "it": "il la gli le di del della accendi accendere spegni spegnere apri chiudi imposta metti avvia e qual puoi in",
    "nl": "de het een zet doe is naar van op sluit aan uit open stel start stuur wat in",
    "pt": "o a os as de do da dos das no na liga ligar desliga desligar apaga acende abre fecha poe esta qual para",
}
MARKS = {language: frozenset(words.split()) for language, words in _MARKS.items()}


class HomeSentences:
    """Asks one Home Assistant. It rests after a silence, and where the command is not there."""

    def __init__(self, client: HomeClient) -> None:
        self._client = client
        self._until_s = 0.0
        self._took_s = 0.0

    @property
    def is_resting(self) -> bool:
        """Tell whether it is not worth asking: it was too slow, cannot answer, or is known to be away."""
        return ticks_s() < self._until_s or self._client.is_away

    def is_worth_asking(self, said: HomeMessage, book: NameBook) -> bool:
        """Tell whether the sentence may be about this house: it names a thing or room, or is short and costs little."""
        words = said.line.split()
        is_about = any(word in book.vocabulary or word in EVERY or kinds(word) for word in words)
        return is_about or (len(words) <= SHORT_WORDS and self._took_s < SLOW_S)

    def rest(self, why: str, seconds: float = REST_S) -> None:
        """Leave sentences to the model for a while."""
        self._until_s = ticks_s() + seconds
        log.info("Home Assistant's sentences are left to the model for %g seconds: %s", seconds, why)

    async def languages_read(self) -> str:
        """In how many languages sentences are read, for the card; or that they are not, and what then is."""
        socket = await self._client.socket()
        try:
            agents = _mapping(await socket.command("conversation/agent/list")).get("agents")
        except HomeRefusal:
            return (
                "It does not read sentences (its conversation part is off): plain commands are English and German only."
            )
        spoken_there = [_texts(_mapping(one).get("supported_languages")) for one in agents or () if "home" in str(one)]
        return f"It reads plain commands in {max(map(len, spoken_there), default=0)} languages."

    async def meaning(self, said: HomeMessage, house: House) -> HouseCommand | None:
        """Return what the sentence means for certain; None for all else. Raises HomeTrouble when no answer comes."""
        language = language_of(said.line, house.language)
        # A house in a language that is not known here by its words may be spoken to in that.
        more = () if house.language[:2].casefold() in MARKS else (house.language,)
        socket = await self._client.socket()
        for each in dict.fromkeys((*more, language)):
            began_s = ticks_s()
            try:
                answer = await socket.command(DEBUG, sentences=[said.text], language=each)
            except HomeRefusal as refusal:  # an old one, or one without its conversation part
                self.rest(refusal.message, LACKS_REST_S)
                return None
            self._took_s = ticks_s() - began_s
            found = spoken(answer, said, house, each)
            if found is not None:
                return found
        return None


def language_of(line: str, default: str) -> str:
    """The language that the line has most words of; the default where that one has as many, or none is known."""
    words = line.split()
    scores = {language: sum(word in marks for word in words) for language, marks in MARKS.items()}
    best = max(scores.values())
    likely = [language for language, score in scores.items() if score == best]
    own = default[:2].casefold()
    return default if not best or own in likely else likely[0]


def spoken(answer: Any, said: HomeMessage, house: House, language: str) -> HouseCommand | None:
    """Return what an answer of `debug` orders or asks for certain. Any: as Home Assistant wrote it."""
    result = _result(answer)
    slots = {str(key): _mapping(detail).get("value") for key, detail in _mapping(result.get("details")).items()}
    if slots.get("name") == "all":
        del slots["name"]
    name = str(_mapping(result.get("intent")).get("name"))
    entities = _entities_named(slots, house)
    if name in LOOKS:
        return looked(_entities_asked_for(name, slots, entities), house, language)
    is_order = said.is_order or (language[:2] not in READ_HERE and EVERYTHING.isdisjoint(said.line.split()))
    reading = _reading(name, slots) if is_order else None
    if reading is None:
        return None
    able = [one for one in entities if one.domain in WAYS[reading.intent]]
    is_kind = not slots.keys().isdisjoint(("domain", "device_class"))
    is_vague = not is_kind and "name" not in slots and reading.intent in ("hass_on", "hass_off", "toggle")
    is_one = "name" in slots or not is_kind or is_one_of_many(said.line)
    targets = _mapping(result.get("targets")).keys() or {one.id for one in able}
    if not able or is_vague or (is_one and len(able) > 1) or not {one.id for one in able} <= targets:
        return None
    made = orders(reading, able)
    return HouseCommand(orders=made, done=answer_to(made, house, language)) if made else None


def _result(answer: Any) -> Mapping[str, Any]:
    """The one result, where it is a whole match of an intent; empty for all else."""
    results = _mapping(answer).get("results")
    result = _mapping(results[0]) if isinstance(results, list) and len(results) == 1 else {}
    # A trigger's automation does what nobody here can know.
    return result if result.get("match") is True and result.get("source") != "trigger" else {}


def _reading(name: str, slots: Mapping[str, Any]) -> OrderReading | None:
    """The order of an intent, where each of its slots is understood."""
    values = {key: value for key, value in slots.items() if key not in WHICH}
    if name == "HassLightSet" and len(values) == 1:
        slot = next(iter(values))
        intent = LIGHT.get(slot, "")
    else:
        intent, slot = INTENTS.get(name, ("", ""))
    if not intent or values.keys() != ({slot} if slot else set()):
        return None
    value = values.get(slot)
    if intent == "colour":
        return OrderReading(intent=intent, colour=normal(str(value)))
    if slot and not (isinstance(value, int | float) and -NUMBER_MAX < value < NUMBER_MAX):
        return None
    return OrderReading(intent=intent, number=float(cast("float", value)) if slot else None)


def _entities_asked_for(name: str, slots: Mapping[str, Any], entities: Sequence[HouseEntity]) -> Sequence[HouseEntity]:
    """Whose state is asked for. How warm a room is, a thermometer says, else the heating."""
    if name == "HassClimateGetTemperature" and "name" not in slots:
        meters = [one for one in entities if one.attributes.get("device_class") == "temperature"]
        heating = meters or [one for one in entities if one.domain == "climate"]
        return heating if len(heating) == 1 else ()
    return entities if slots.keys() - {"state"} else ()


def _entities_named(slots: Mapping[str, Any], house: House) -> list[HouseEntity]:
    """Return what is shown of the house and fits every slot that says which."""
    name = normal(str(slots.get("name", "")))
    areas = _areas(slots, house)
    domains, classes = _texts(slots.get("domain")), _texts(slots.get("device_class"))
    return [
        one
        for one in house.entities.values()
        if one.is_shown
        and ("name" not in slots or name in map(normal, (one.name, *one.aliases)))
        and (areas is None or one.area_id in areas)
        and (not domains or one.domain in domains)
        and (not classes or str(one.attributes.get("device_class")) in classes)
    ]


def _areas(slots: Mapping[str, Any], house: House) -> set[str] | None:
    """The rooms that an area or a floor names, by id or by name; None where none is said."""
    found: set[str] | None = None
    if "area" in slots:
        found = _called(str(slots["area"]), house.areas)
    if "floor" in slots:
        floors = _called(str(slots["floor"]), house.floors)
        on_it = {area.id for area in house.areas.values() if area.floor_id in floors}
        found = on_it if found is None else found & on_it
    return found


def _called(word: str, places: Mapping[str, Any]) -> set[str]:
    """The ids of the places that have this id, or else this name."""
    by_name = {id for id, one in places.items() if normal(word) in map(normal, (one.name, *one.aliases))}
    return {word} if word in places else by_name


def _texts(value: Any) -> set[str]:
    return {str(each) for each in (value if isinstance(value, list) else [value])} if value else set()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
