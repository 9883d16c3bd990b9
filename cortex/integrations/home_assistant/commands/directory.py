"""Which entities a command's words name for certain. Built once for the names of a house; states do not matter here.

Every word of the target has to be used: what is left over, or fits twice, names nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cortex.integrations.home_assistant.commands.kinds import (
    DOMAINS,
    KINDS,
    Kind,
    KindWord,
    compound,
    is_of,
    joined,
)
from cortex.integrations.home_assistant.commands.words import name_tokens
from cortex.integrations.home_assistant.house import House, HouseEntity

Tokens = tuple[str, ...]
_PLACED = "in im inside at on of for from vom von am auf an bei beim fuer ins"
PLACED = frozenset(_PLACED.split())
ALL = frozenset(["all", "alle", "allen", "saemtliche", "saemtlichen"])
ALL_OF = frozenset(["whole", "entire", "ganzen", "ganze", "ganzes"])
EVERYWHERE = ("everywhere", "ueberall")
IN_THE_HOUSE = (("in", "house"), ("im", "haus"), ("in", "haus"))
ORDERABLE = frozenset().union(*DOMAINS.values())
LINKS = ("", "n", "en", "s", "es", "er")  # what German puts between the parts of a compound


@dataclass(frozen=True, slots=True)
class _Named:
    """An entity's name as it is compared. `bare`: without its own area; `kinds`: what people call it."""

    one: HouseEntity
    kinds: frozenset[Kind]
    whole: frozenset[Tokens]
    forms: frozenset[Tokens]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTarget:
    """What is looked for: words, the domains that the order can move, the kind meant where only a place is named."""

    words: Tokens
    domains: frozenset[str]
    kind: Kind | None = None


class Directory:
    """The names of one house. Ids are what comes out; how they stand is the house's to say."""

    def __init__(self, house: House) -> None:
        """Index what can be ordered about and is shown."""
        self._places: dict[Tokens, set[str]] = defaultdict(set)
        self._add_places(house)
        self._in_area: dict[str, list[_Named]] = defaultdict(list)
        self._by_whole: dict[Tokens, list[_Named]] = defaultdict(list)
        self._by_form: dict[Tokens, list[_Named]] = defaultdict(list)
        self._by_kind: dict[Kind, list[_Named]] = defaultdict(list)
        areas = {key: _area_names(area.name, area.aliases) for key, area in house.areas.items()}
        for one in house.entities.values():
            if one.is_shown and one.domain in ORDERABLE:
                self._add(_named(one, areas.get(one.area_id, ())))

    def _add_places(self, house: House) -> None:
        for area in house.areas.values():
            for name in _area_names(area.name, area.aliases):
                self._places[name].add(area.id)
        for floor in house.floors.values():
            held = {area.id for area in house.areas.values() if area.floor_id == floor.id}
            for name in _area_names(floor.name, floor.aliases):
                self._places[name] |= held

    def _add(self, named: _Named) -> None:
        self._in_area[named.one.area_id].append(named)
        for whole in named.whole:
            self._by_whole[whole].append(named)
        for form in named.forms:
            self._by_form[form].append(named)
        for kind in named.kinds:
            self._by_kind[kind].append(named)

    def find(self, target: OrderTarget) -> tuple[str, ...]:
        """The ids that the words surely name, in the house's order; () for none, and where two readings differ."""
        words, is_all = _quantity(joined(target.words))
        if not words and target.kind is None:
            return ()
        for level in (self._exact, self._groups, self._forms, self._single):
            found = {tuple(sorted(ids)) for ids in level(words, target, is_all=is_all) if ids}
            if found:
                return found.pop() if len(found) == 1 else ()
        return ()

    # --- the levels, the surest first ---------------------------------------------------------------------------

    def _exact(self, words: Tokens, target: OrderTarget, *, is_all: bool) -> Iterator[set[str]]:
        """The whole name, unless it is one that says nothing but a kind or a place."""
        if is_all or words in self._places or all(word in KINDS for word in words):
            return
        for spoken in {words, words[1:] if words[:1] and words[0] in PLACED else words}:
            if spoken and spoken not in self._places:
                yield from self._one_of(self._by_whole.get(spoken, ()), target)

    def _groups(self, words: Tokens, target: OrderTarget, *, is_all: bool) -> Iterator[set[str]]:
        """All of a kind in a place, or in the house where that is said."""
        for phrase, areas in self._split(words):
            kind = _kind_word(phrase, target.kind)
            if kind is None or not (is_all or kind.count in ("many", "mass") or (not phrase and kind.kind == "light")):
                continue
            members = {named.one.id for named in self._of_kind(kind.kind, areas, target)}
            if areas is not None or is_all or len(members) == 1:
                yield members

    def _forms(self, words: Tokens, target: OrderTarget, *, is_all: bool) -> Iterator[set[str]]:
        """A name without its kind or its room, in a room or where it is the only one."""
        if is_all:
            return
        for phrase, areas in self._split(words):
            if not phrase or phrase in self._places or all(word in KINDS for word in phrase):
                continue
            key = _canonical(phrase)
            said = {KINDS[word].kind for word in phrase[-1:] if word in KINDS}
            named = [
                each
                for each in self._by_form.get(key, ())
                if (areas is None or each.one.area_id in areas) and said <= each.kinds
            ]
            yield from self._one_of(named, target)

    def _single(self, words: Tokens, target: OrderTarget, *, is_all: bool) -> Iterator[set[str]]:
        """The only one of a kind in a place, or in the house."""
        if is_all:
            return
        for phrase, areas in self._split(words):
            kind = _kind_word(phrase, target.kind)
            if kind is not None and kind.count == "one":
                members = {named.one.id for named in self._of_kind(kind.kind, areas, target)}
                # More than one: nobody knows which. It counts as a reading, so that no other one wins over it.
                yield members if len(members) == 1 else ({"", *members} if members else members)

    def _one_of(self, named: Iterable[_Named], target: OrderTarget) -> Iterator[set[str]]:
        fitting = {each.one.id for each in named if each.one.domain in target.domains}
        if fitting:
            yield fitting if len(fitting) == 1 else {"", *fitting}

    def _of_kind(self, kind: Kind, areas: frozenset[str] | None, target: OrderTarget) -> list[_Named]:
        pool = self._by_kind.get(kind, ())
        return [
            each for each in pool if each.one.domain in target.domains and (areas is None or each.one.area_id in areas)
        ]

    # --- places ---------------------------------------------------------------------------------------------------

    def _split(self, words: Tokens) -> Iterator[tuple[Tokens, frozenset[str] | None]]:
        """Every way to part the words into a phrase and the areas of a place; None: no place is named."""
        bare = words[1:] if words[:1] and words[0] in PLACED else words
        yield bare, None
        for phrase, place in _parted(words):
            areas = self._places.get(place)
            if areas:
                yield phrase, frozenset(areas)
        for at, word in enumerate(words):
            ending = None if word in KINDS else compound(word)
            if ending is None:
                continue
            begin, kind = ending
            end = word[len(begin) :]
            for link in LINKS:
                stem = begin[: len(begin) - len(link)] if link and begin.endswith(link) else begin
                areas = self._places.get((stem,)) if (not link or stem != begin) else None
                if areas and kind:
                    yield (*words[:at], end, *words[at + 1 :]), frozenset(areas)


def _parted(words: Tokens) -> Iterator[tuple[Tokens, Tokens]]:
    """Phrase and place: "lamp in study", "in study lamp", "study lamp", "lamp study", "study"."""
    yield (), words
    for at in range(1, len(words)):
        yield words[at:], words[:at]
        yield words[:at], words[at:]
        if words[at] in PLACED and at + 1 < len(words):
            yield words[:at], words[at + 1 :]
    if words[:1] and words[0] in PLACED:
        yield (), words[1:]
        for at in range(2, len(words)):
            yield words[at:], words[1:at]


def _quantity(words: Tokens) -> tuple[Tokens, bool]:
    """The words without "all" and "everywhere", and whether one of those stood there."""
    is_all = any(word in ALL or word in EVERYWHERE for word in words)
    left = tuple(word for word in words if word not in ALL and word not in EVERYWHERE and word not in ALL_OF)
    if is_all and "of" in left[:1]:
        left = left[1:]
    for said in IN_THE_HOUSE:
        if left[-2:] == said:
            return left[:-2], True
        if left[:2] == said:
            return left[2:], True
    return left, is_all


def _kind_word(phrase: Tokens, default: Kind | None) -> KindWord | None:
    """The kind that the phrase is nothing but, or the order's own where there is no phrase."""
    if not phrase:
        return KindWord(default) if default else None
    return KINDS.get(phrase[0]) if len(phrase) == 1 else None


def _canonical(words: Tokens) -> Tokens:
    """The words with those of one kind made the same: lamp, lights, Licht."""
    return tuple(f"<{KINDS[word].kind}>" if word in KINDS else word for word in words)


def _area_names(name: str, aliases: Iterable[str]) -> tuple[Tokens, ...]:
    return tuple(dict.fromkeys(name_tokens(each) for each in (name, *aliases) if name_tokens(each)))


def _named(one: HouseEntity, area_names: tuple[Tokens, ...]) -> _Named:
    kinds = frozenset(kind for kind, domains in DOMAINS.items() if one.domain in domains and is_of(one, kind))
    whole = frozenset(joined(name_tokens(name)) for name in (one.name, *one.aliases) if name_tokens(name))
    forms: set[Tokens] = set()
    for words in whole:
        forms |= {words, *(_without(words, joined(name)) for name in area_names)}
    placed = {(*name, *words) for words in forms for name in area_names if words}  # "Lamp" in the study: study lamp
    whole |= placed
    forms |= placed
    known = {_canonical(words) for words in forms if words}
    marks = {f"<{kind}>" for kind in kinds}
    shorter = {tuple(word for word in words if word not in marks) for words in known}
    longer = {(*words, mark) for words in shorter for mark in marks}
    every = known | shorter | longer
    said = frozenset(words for words in every if any(not word.startswith("<") for word in words))
    return _Named(one=one, kinds=kinds, whole=whole, forms=said)


def _without(words: Tokens, area: Tokens) -> Tokens:
    """The name without its own area at either end."""
    if area and words[: len(area)] == area:
        return words[len(area) :]
    return words[: -len(area)] if area and words[-len(area) :] == area else words


def names_of_house(house: House) -> Mapping[str, object]:
    """All that a directory depends on, to see whether one that stands still fits this house."""
    return {
        "entities": [
            (one.id, one.name, one.aliases, one.area_id, one.is_shown, one.attributes.get("device_class"))
            for one in house.entities.values()
        ],
        "areas": dict(house.areas),
        "floors": dict(house.floors),
    }
