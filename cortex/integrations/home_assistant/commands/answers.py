"""The short sentence that a person reads when a command is done or a state was asked for, in their language. Pure."""

import re
from collections.abc import Mapping, Sequence

from cortex.integrations.home_assistant.commands.orders import whole
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.ports.home_assistant import HouseCommand, HouseOrder

SHOWN = 4
LOOKS_MAX = 30
NAME_CHARACTERS = 60
_MARKS = re.compile(r"://|[^\w\s.,°%'&+/€£-]|_|www|/(?!(?:h|s|min|d|l|km|m²|m³|k?Wh)\b)")  # a slash only in a unit
# Services and states, in these languages; in any other one "✓", and a state as it is.
LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "pt"]
_TABLE = """
turn_on: Turned on | Eingeschaltet | Allumé | Encendido | Acceso | Ingeschakeld | Ligado
turn_off: Turned off | Ausgeschaltet | Éteint | Apagado | Spento | Uitgeschakeld | Desligado
toggle: Switched over | Umgeschaltet | Basculé | Cambiado | Commutato | Omgeschakeld | Alternado
open_cover: Opening | Wird geöffnet | Ouverture | Abriendo | In apertura | Gaat open | A abrir
close_cover: Closing | Wird geschlossen | Fermeture | Cerrando | In chiusura | Gaat dicht | A fechar
stop stop_cover media_stop: Stopped | Angehalten | Arrêté | Detenido | Fermato | Gestopt | Parado
start: Started | Gestartet | Démarré | En marcha | Avviato | Gestart | Iniciado
lock: Locked | Abgeschlossen | Verrouillé | Bloqueado | Chiuso a chiave | Vergrendeld | Trancado
unlock: Unlocked | Aufgeschlossen | Déverrouillé | Desbloqueado | Aperto | Ontgrendeld | Destrancado
volume_up: Louder | Lauter | Plus fort | Más alto | Più forte | Harder | Mais alto
volume_down: Quieter | Leiser | Moins fort | Más bajo | Più piano | Zachter | Mais baixo
increase_speed: Faster | Schneller | Plus vite | Más rápido | Più veloce | Sneller | Mais rápido
decrease_speed: Slower | Langsamer | Moins vite | Más lento | Più lento | Langzamer | Mais lento
pause media_pause: Paused | Pausiert | En pause | En pausa | In pausa | Gepauzeerd | Em pausa
media_play: Playing | Spielt | Lecture | Reproduciendo | In riproduzione | Speelt | A tocar
media_next_track: Next track | Nächster Titel | Titre suivant | Siguiente | Successivo | Volgende | Seguinte
media_previous_track: Previous track | Vorheriger Titel | Titre précédent | Anterior | Precedente | Vorige | Anterior
return_to_base: On its way home | Auf dem Heimweg | Retour à la base | A su base | Alla base | Naar de basis | À base
muted: Muted | Stumm | Muet | Silenciado | Silenziato | Gedempt | Sem som
unmuted: Sound on | Ton an | Son rétabli | Con sonido | Audio attivo | Geluid aan | Com som
brighter: Brighter | Heller | Plus clair | Más luz | Più luce | Helderder | Mais luz
dimmer: Dimmer | Dunkler | Moins clair | Menos luz | Meno luce | Zwakker | Menos luz
more: and {} more | und {} weitere | et {} autres | y {} más | e altri {} | en {} andere | e mais {}
unavailable: Not reachable | Nicht erreichbar | Injoignable | Inaccesible | Irraggiungibile | Onbereikbaar | Inacessível
on: On | An | Allumé | Encendido | Acceso | Aan | Ligado
off: Off | Aus | Éteint | Apagado | Spento | Uit | Desligado
open: Open | Offen | Ouvert | Abierto | Aperto | Open | Aberto
closed: Closed | Geschlossen | Fermé | Cerrado | Chiuso | Dicht | Fechado
locked: Locked | Abgeschlossen | Verrouillé | Bloqueado | Chiuso a chiave | Vergrendeld | Trancado
unlocked: Unlocked | Aufgeschlossen | Déverrouillé | Desbloqueado | Non chiuso a chiave | Ontgrendeld | Destrancado
found: Detected | Erkannt | Détecté | Detectado | Rilevato | Gedetecteerd | Detetado
clear: Clear | Frei | Rien | Nada | Niente | Niets | Nada
"""
_WORDS: Mapping[str, Sequence[str]] = {
    key: words.split(" | ")
    for keys, _, words in (row.partition(": ") for row in _TABLE.strip().splitlines())
    for key in keys.split()
}
_STATES = frozenset(["unavailable", "on", "off", "open", "closed", "locked", "unlocked", "found", "clear"])
_UNITS = {"brightness_pct": " %", "percentage": " %", "position": " %", "color_temp_kelvin": " K", "temperature": "°"}
_BINARY = {"lock": ("unlocked", "locked")}  # by device class: the words for on and off
_BINARY |= dict.fromkeys(("door", "garage_door", "opening", "window"), ("open", "closed"))
_BINARY |= dict.fromkeys(("motion", "occupancy", "smoke", "gas", "moisture"), ("found", "clear"))


def answer(orders: Sequence[HouseOrder], house: House, language: str) -> str:
    """Return what was done with which entities; those that do not answer are named apart."""
    entities = [(order, house.entities[key]) for order in orders for key in order.ids]
    here = [(_action_words(order, language), one) for order, one in entities if one.state != "unavailable"]
    away = [(_word("unavailable", language), one) for _, one in entities if one.state == "unavailable"]
    return _sentences_by_words([*here, *away], house, language)


def looked(entities: Sequence[HouseEntity], house: House, language: str) -> HouseCommand | None:
    """The command that tells how the entities stand; None for none, and for more than anybody reads."""
    if not 0 < len(entities) <= LOOKS_MAX:
        return None
    done = _sentences_by_words([(_state(one, language), one) for one in entities], house, language)
    return HouseCommand(orders=(), looks=tuple(one.id for one in entities), done=done)


def _sentences_by_words(told: Sequence[tuple[str, HouseEntity]], house: House, language: str) -> str:
    parts: dict[str, list[HouseEntity]] = {}
    for what, one in told:
        parts.setdefault(what, []).append(one)
    return " ".join(f"{what}: {_names(found, house, language)}." for what, found in parts.items())


def _action_words(order: HouseOrder, language: str) -> str:
    """Return what the call does, in a word or a figure."""
    data = order.data
    for key, unit in _UNITS.items():
        if key in data:
            return f"{data[key]}{unit}"
    if "volume_level" in data:
        return f"{whole(round(float(str(data['volume_level'])) * 100))} %"
    if "color_name" in data:
        return str(data["color_name"]).capitalize()
    if "brightness_step_pct" in data:
        return _word("brighter" if int(str(data["brightness_step_pct"])) > 0 else "dimmer", language)
    if "is_volume_muted" in data:
        return _word("muted" if data["is_volume_muted"] else "unmuted", language)
    return _word(order.service.partition(".")[2], language)


def _state(one: HouseEntity, language: str) -> str:
    """Its state in words, with its unit."""
    state, kind = one.state, str(one.attributes.get("device_class"))
    if one.domain == "binary_sensor" and state in ("on", "off"):
        state = _BINARY.get(kind, ("on", "off"))[state == "off"]
    warmth = one.attributes.get("current_temperature") if one.domain == "climate" else None
    more = f", {warmth}°" if warmth is not None else f" {one.unit}"
    return _word(state, language) if state in _STATES else _plain_name(f"{state}{more}")


def _word(key: str, language: str) -> str:
    short = language[:2].casefold()  # of a house in en-GB or pt-BR too
    if short in LANGUAGES:
        return _WORDS[key][LANGUAGES.index(short)]
    return key if key in _STATES else "+ {}" if key == "more" else "✓"


def _names(entities: Sequence[HouseEntity], house: House, language: str) -> str:
    names = [_name(one, house) for one in entities[:SHOWN]]
    more = len(entities) - SHOWN
    if more > 0:
        names.append(_word("more", language).format(more))
    return ", ".join(names)


def _name(one: HouseEntity, house: House) -> str:
    """Its name, with its room where the name does not say it."""
    area = house.areas.get(one.area_id)
    if area is None or area.name.casefold() in one.name.casefold():
        return _plain_name(one.name)
    return f"{_plain_name(one.name)} ({_plain_name(area.name)})"


def _plain_name(name: str) -> str:
    """A name as text alone: the page reads answers as Markdown."""
    return " ".join(_MARKS.sub(" ", name).split())[:NAME_CHARACTERS]
