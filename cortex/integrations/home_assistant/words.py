"""The words for kinds of devices, for all of them, and for states, in English, German, French, Spanish, Italian, Dutch.

A small table; names, rooms and floors are the house's own. Words are written as `normal` gives them.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from cortex.integrations.home_assistant.house import HouseEntity

_NOT_DECOMPOSED = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "\u0131": "i"})
_MARKS = re.compile(r"[^\w]+|_+")


@lru_cache(maxsize=16_384)
def normal(text: str) -> str:
    """Small letters without accents, one blank between words: "Küche, groß!" -> "kuche gross"."""
    if not text.isascii():
        folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
        text = "".join(char for char in folded if not unicodedata.combining(char)).translate(_NOT_DECOMPOSED)
    return _MARKS.sub(" ", text.lower()).strip()


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of device: its domains, and its device classes where it has some ("" = none given, which fits too).

    `called`: domains of which one is of this kind where its name ends so, as a switch called "Shed lights".
    """

    domains: frozenset[str]
    classes: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()

    def fits(self, one: HouseEntity) -> bool:
        """Tell whether the entity is of this kind."""
        if one.domain in self.called and any(self in kinds(word) for word in normal(one.name).split()[-1:]):
            return True
        return one.domain in self.domains and (
            not self.classes or str(one.attributes.get("device_class") or "") in self.classes
        )


def _kind(domains: str, classes: str = "", called: str = "", *, or_none: bool = False) -> Kind:
    held = frozenset([*classes.split(), *([""] if or_none else [])])
    return Kind(domains=frozenset(domains.split()), classes=held, called=frozenset(called.split()))


# Kind, words that mean all of it in a room, words that mean one.
_TABLE: tuple[tuple[Kind, str, str], ...] = (
    (
        _kind("light", called="switch input_boolean"),
        "light lights lighting lamps bulbs licht lichter lichten beleuchtung lampen leuchten verlichting lumiere "
        "lumieres eclairage lampes luz luces iluminacion lamparas luce luci illuminazione lampade",
        "lamp bulb lampe leuchte ampoule lampara bombilla lampada lampadina",
    ),
    (
        _kind("switch"),
        "switches schalter interrupteurs interruptores interruttori schakelaars",
        "switch interrupteur interruptor interruttore schakelaar",
    ),
    (
        _kind("switch", "outlet"),
        "outlets plugs sockets steckdosen prises enchufes prese stopcontacten",
        "outlet plug socket steckdose prise enchufe presa stopcontact",
    ),
    (
        _kind("fan"),
        "fans ventilatoren lufter ventilateurs ventiladores ventilatori",
        "fan ventilator ventilateur ventilador ventilatore",
    ),
    (
        _kind("cover", "blind shutter shade", or_none=True),
        "blinds shutters shades covers rollladen rolladen jalousien rollos volets stores persianas tapparelle persiane "
        "rolluiken jaloezieen",
        "blind shutter shade cover jalousie rollo volet store persiana tapparella rolluik",
    ),
    (
        _kind("cover", "curtain"),
        "curtains drapes vorhange gardinen rideaux cortinas tende gordijnen",
        "curtain vorhang gardine rideau cortina tenda gordijn",
    ),
    (_kind("cover", "awning"), "awnings markisen", "awning markise toldo zonwering"),
    (_kind("cover", "garage gate door"), "", "garage garaje garagem garagentor garagedeur gate tor portail"),
    (
        _kind("climate water_heater"),
        "heating heaters thermostats radiators climate heizung heizungen heizkorper thermostate klima "
        "chauffage radiateurs climatisation calefaccion radiadores climatizacion riscaldamento termosifoni verwarming "
        "radiatoren",
        "heater thermostat radiator boiler radiateur termostato radiador termosifone thermostaat",
    ),
    (_kind("", called="climate"), "airco klimaanlagen", "ac airco klimaanlage conditioner conditioning"),
    (
        _kind("media_player"),
        "music media audio sound musik musique musica muziek",
        "player",
    ),
    (
        _kind("media_player", "speaker", or_none=True),
        "speakers lautsprecher enceintes altavoces altoparlanti luidsprekers",
        "speaker enceinte altavoz altoparlante luidspreker",
    ),
    (
        _kind("media_player", "tv", called="media_player"),
        "",
        "tv television fernseher tele televisor televisore televisie",
    ),
    (
        _kind("lock"),
        "locks schlosser serrures cerraduras serrature sloten",
        "lock schloss serrure verrou cerradura serratura slot",
    ),
    (
        _kind("vacuum"),
        "vacuums",
        "vacuum hoover staubsauger saugroboter aspirateur aspiradora aspirapolvere stofzuiger",
    ),
    (_kind("scene"), "scenes szenen escenas scenari", "scene szene escena scenario"),
    (_kind("script"), "scripts skripte", "script skript"),
    (_kind("automation"), "automations automationen", "automation automatisation"),
    (_kind("humidifier"), "humidifiers", "humidifier luftbefeuchter humidificateur humidificador umidificatore"),
    (_kind("valve"), "valves ventile", "valve ventil vanne valvula valvola"),
    (_kind("siren"), "sirens sirenen", "siren sirene sirena"),
    (_kind("camera"), "cameras kameras", "camera kamera telecamera"),
    (_kind("sensor binary_sensor"), "sensors sensoren capteurs sensores sensori", "sensor capteur sensore"),
    (
        _kind("sensor", "temperature"),
        "temperatures temperature temperaturen temperatur temperaturas temperatura temperatuur",
        "",
    ),
    (
        _kind("sensor", "humidity"),
        "humidity feuchtigkeit luftfeuchtigkeit humidite humedad umidita vochtigkeit luchtvochtigheid",
        "",
    ),
    (
        _kind("sensor binary_sensor", "battery"),
        "batteries battery batterien batterie batterias bateria baterias batteria batterijen batterij",
        "",
    ),
    (_kind("sensor", "power"), "power leistung puissance potencia potenza vermogen", ""),
    (_kind("sensor", "energy"), "energy energie energia", ""),
    (_kind("sensor", "illuminance"), "brightness illuminance helligkeit luminosite luminosidad luminosita", ""),
    (
        _kind("binary_sensor cover", "window"),
        "windows fenster fenetres ventanas finestre ramen",
        "window fenetre ventana finestra raam",
    ),
    (
        _kind("binary_sensor cover", "door garage_door opening"),
        "doors turen tueren portes puertas porte deuren",
        "door tur tuer puerta porta deur",
    ),
    (_kind("lock"), "doors turen tueren portes puertas porte deuren", "door tur tuer puerta porta deur"),
    (
        _kind("binary_sensor", "motion occupancy presence"),
        "motion bewegung mouvement movimiento movimento beweging",
        "",
    ),
    (_kind("binary_sensor", "smoke"), "smoke rauch fumee humo fumo rook", ""),
    (_kind("binary_sensor", "moisture"), "leak leaks leck fuite fuga perdita lekkage", ""),
)


def _by_word(column: int) -> Mapping[str, tuple[Kind, ...]]:
    found: dict[str, tuple[Kind, ...]] = {}
    for row in _TABLE:
        for word in str(row[column]).split():
            found[word] = (*found.get(word, ()), row[0])
    return found


ALL_OF: Mapping[str, tuple[Kind, ...]] = _by_word(1)
ONE_OF: Mapping[str, tuple[Kind, ...]] = _by_word(2)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


EVERY = _set(
    "all every everything everywhere whole entire house alle alles jede ganze ganzen ganzes uberall haus tous "
    "toutes tout toute todo todos todas toda tutto tutti tutte"
)
STOP = _set(
    "the my our s in on of at for to der die das den dem des ein eine einen im am auf vom von zum zur mein meine unser "
    "unsere le la les l de du d un une dans sur au aux mon ma mes notre el los las del en una mi mis il lo gli di "
    "della dello dei delle nel nella het een op van mijn onze"
)
NOT = _set(
    "not no except but without ausser nicht kein keine ohne sauf sans pas excepto menos sin tranne eccetto senza non "
    "behalve zonder niet geen"
)
LINKS = ("", "n", "s", "es", "en", "er", "e")  # between the parts of a German or Dutch compound: Küche-n-licht
JOINS = re.compile(r"\s*[,;&+]\s*|\s+(?:and|und|et|y|e|ed|en)\s+", re.IGNORECASE)

_STATES = {
    "on": "on an ein eingeschaltet allume allumee encendido encendida acceso accesa aan",
    "off": "off aus ausgeschaltet eteint eteinte apagado apagada spento spenta uit",
    "open": "open offen geoffnet auf ouvert ouverte abierto abierta aperto aperta opening",
    "closed": "closed zu geschlossen ferme fermee cerrado cerrada chiuso chiusa dicht gesloten closing",
    "locked": "locked abgeschlossen verriegelt verrouille bloqueado",
    "unlocked": "unlocked aufgeschlossen entriegelt deverrouille desbloqueado",
    "unavailable": "unavailable offline dead indisponible unerreichbar",
    "playing": "playing spielt",
    "home": "home zuhause",
}
STATES: Mapping[str, frozenset[str]] = {
    word: frozenset({state, *({"opening"} if word == "opening" else ())})
    for state, words in _STATES.items()
    for word in words.split()
}


def kinds(word: str) -> tuple[Kind, ...]:
    """The kinds of device that a word names, in any language; none for another word."""
    return (*ALL_OF.get(word, ()), *ONE_OF.get(word, ()))


# Rooms that most houses have, a line each: a house that calls one by one of these words is understood by the others.
_ROOMS = """
kitchen|kuche|cuisine|cocina|cucina|keuken
living room|lounge|sitting room|wohnzimmer|salon|sejour|sala de estar|salotto|soggiorno|woonkamer
bedroom|schlafzimmer|chambre|dormitorio|camera da letto|slaapkamer
bathroom|bad|badezimmer|salle de bain|salle de bains|bano|cuarto de bano|bagno|badkamer
hall|hallway|corridor|flur|diele|couloir|entree|pasillo|corridoio|gang|hal
office|study|buro|arbeitszimmer|bureau|oficina|despacho|ufficio|kantoor|werkkamer
dining room|esszimmer|salle a manger|comedor|sala da pranzo|eetkamer
children s room|kids room|kinderzimmer|chambre d enfant|cuarto de los ninos|cameretta|kinderkamer
garden|garten|jardin|giardino|tuin
garage
cellar|basement|keller|cave|sous sol|sotano|cantina|kelder
attic|dachboden|grenier|atico|soffitta|zolder
balcony|balkon|balcon|balcone
terrace|patio|terrasse|terraza|terrazza|terras
laundry room|waschkuche|buanderie|lavadero|lavanderia|waskamer
guest room|gastezimmer|chambre d amis|habitacion de invitados|camera degli ospiti|logeerkamer
toilet|wc|gaste wc|toilettes|aseo|gabinetto
"""
SAME_ROOM: Mapping[str, tuple[str, ...]] = {
    word: tuple(row.split("|")) for row in _ROOMS.split("\n") for word in row.split("|") if word
}
