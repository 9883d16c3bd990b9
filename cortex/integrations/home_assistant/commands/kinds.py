"""What people call kinds of devices, in English and German, and which entities are of a kind. Pure."""

from dataclasses import dataclass
from typing import Literal

from cortex.integrations.home_assistant.commands.words import name_tokens
from cortex.integrations.home_assistant.house import HouseEntity

Kind = Literal[
    "light", "fan", "blind", "shutter", "curtain", "awning", "garage", "gate", "door", "lock", "heating", "cooler",
    "player", "tv", "speaker", "radio", "vacuum", "outlet", "switch",
]  # fmt: skip
Count = Literal["one", "many", "mass"]  # "Licht" is a mass: all of it in the room
COUNTS: tuple[Count, ...] = ("one", "many", "mass")


@dataclass(frozen=True, slots=True)
class KindWord:
    """What a word of the language says: of which kind, and how many."""

    kind: Kind
    count: Count = "one"


_WORDS: dict[Kind, tuple[str, str, str]] = {  # one, many, mass
    "light": (
        "light lamp lampe leuchte",
        "lights lamps lampen leuchten lichter",
        "lighting licht beleuchtung",
    ),
    "fan": ("fan ventilator luefter", "fans ventilatoren", ""),
    "blind": ("blind shade rollo jalousie raffstore", "blinds shades rollos jalousien raffstores", ""),
    "shutter": ("shutter rollladen rolladen", "shutters rolllaeden rollaeden", ""),
    "curtain": ("curtain vorhang gardine", "curtains drapes vorhaenge gardinen", ""),
    "awning": ("awning markise", "awnings markisen", ""),
    "garage": ("garagedoor garagentor garage", "garagedoors garagentore", ""),
    "gate": ("gate tor", "gates tore", ""),
    "door": ("door tuer", "doors tueren", ""),
    "lock": ("lock schloss tuerschloss", "locks schloesser", ""),
    "heating": ("heating heater thermostat heizung temperature temperatur", "heaters thermostats heizungen", ""),
    "cooler": ("ac airconditioner airconditioning klimaanlage", "", ""),
    "player": ("music media audio mediaplayer soundsystem audiosystem musicsystem mediasystem musik", "", ""),
    "tv": ("tv television telly fernseher", "tvs fernseherin", ""),
    "speaker": ("speaker soundbar lautsprecher", "speakers", ""),
    "radio": ("radio", "radios", ""),
    "vacuum": ("vacuum hoover vacuumcleaner robotvacuum staubsauger saugroboter", "", ""),
    "outlet": ("outlet plug socket steckdose", "outlets plugs sockets steckdosen", ""),
    "switch": ("switch schalter", "switches", ""),
}
KINDS: dict[str, KindWord] = {
    word: KindWord(kind, count)
    for kind, lists in _WORDS.items()
    for count, words in zip(COUNTS, lists, strict=True)
    for word in words.split()
}
# Two words that are one: joined ahead of everything else, in names too.
PAIRS = {
    ("garage", "door"): "garagedoor",
    ("garage", "doors"): "garagedoors",
    ("media", "player"): "mediaplayer",
    ("sound", "system"): "soundsystem",
    ("audio", "system"): "audiosystem",
    ("music", "system"): "musicsystem",
    ("media", "system"): "mediasystem",
    ("vacuum", "cleaner"): "vacuumcleaner",
    ("robot", "vacuum"): "robotvacuum",
    ("air", "conditioner"): "airconditioner",
    ("air", "conditioning"): "airconditioning",
}
DOMAINS: dict[Kind, frozenset[str]] = {
    "light": frozenset({"light", "switch", "input_boolean"}),
    "fan": frozenset({"fan", "switch"}),
    "blind": frozenset({"cover"}),
    "shutter": frozenset({"cover"}),
    "curtain": frozenset({"cover"}),
    "awning": frozenset({"cover"}),
    "garage": frozenset({"cover"}),
    "gate": frozenset({"cover", "lock"}),
    "door": frozenset({"lock"}),
    "lock": frozenset({"lock"}),
    "heating": frozenset({"climate"}),
    "cooler": frozenset({"climate"}),
    "player": frozenset({"media_player"}),
    "tv": frozenset({"media_player"}),
    "speaker": frozenset({"media_player"}),
    "radio": frozenset({"media_player"}),
    "vacuum": frozenset({"vacuum"}),
    "outlet": frozenset({"switch"}),
    "switch": frozenset({"switch"}),
}
WHOLE = {  # a whole domain is of this kind, whatever its entities are called
    "light": "light",
    "fan": "fan",
    "door": "lock",
    "lock": "lock",
    "heating": "climate",
    "player": "media_player",
    "vacuum": "vacuum",
}
_BY_CLASS: dict[Kind, frozenset[str]] = {
    "blind": frozenset({"blind", "shade"}),
    "shutter": frozenset({"shutter"}),
    "curtain": frozenset({"curtain"}),
    "awning": frozenset({"awning"}),
    "garage": frozenset({"garage"}),
    "gate": frozenset({"gate"}),
    "tv": frozenset({"tv"}),
    "speaker": frozenset({"speaker"}),
    "outlet": frozenset({"outlet"}),
}


def joined(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with pairs that mean one thing as one."""
    made: list[str] = []
    for word in words:
        if made and (made[-1], word) in PAIRS:
            made[-1] = PAIRS[made[-1], word]
        else:
            made.append(word)
    return tuple(made)


def compound(word: str) -> tuple[str, KindWord] | None:
    """What a German compound ends in, with the word before: "kuechenlicht" is kuechen + licht."""
    found = [end for end in KINDS if len(end) > 3 and word.endswith(end) and len(word) - len(end) > 1]
    if not found:
        return None
    end = max(found, key=len)
    return word[: -len(end)], KINDS[end]


def kinds_in_name(one: HouseEntity) -> frozenset[Kind]:
    """The kinds that its own name says: a switch that is called "Shed lights" is a light to people."""
    words = joined(name_tokens(one.name))
    said = {KINDS[word].kind for word in words[-1:] + words[:1] if word in KINDS}
    said |= {end[1].kind for word in words[-1:] if word not in KINDS and (end := compound(word))}
    return frozenset(said)


def is_of(one: HouseEntity, kind: Kind) -> bool:
    """Whether people would call this entity that: by its domain, else by its name, else by its class."""
    if one.domain not in DOMAINS[kind]:
        return False
    if WHOLE.get(kind) == one.domain:
        return True
    said = kinds_in_name(one) & {known for known, domains in DOMAINS.items() if one.domain in domains}
    if kind in said:
        return True
    return not said and str(one.attributes.get("device_class", "")) in _BY_CLASS.get(kind, ())
