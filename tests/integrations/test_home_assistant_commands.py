"""Plain commands for a house: what is certain becomes calls, all else is left to the model."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.integrations.home_assistant.commands.readings import may_be_command
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.integrations.home_assistant.words import normal
from cortex.ports.home_assistant import HouseCommand
from tests.integrations.home_assistant_houses import ENGLISH, GERMAN, entity, house_of, rooms
from tests.integrations.home_sentences import MODEL, german_rows, in_words
from tests.plain_home_assistant import commands_in

GERMAN_ROWS = german_rows()
READERS = {id(house): commands_in(house) for house in (ENGLISH, GERMAN)}


def asked(text: str, house: House, may: Callable[[HouseEntity], bool] | None = None) -> HouseCommand | None:
    reader = commands_in(house, may) if may else READERS.get(id(house)) or commands_in(house)
    return asyncio.run(reader.understand(text))


@pytest.mark.parametrize(("text", "wanted"), GERMAN_ROWS, ids=[text for text, _ in GERMAN_ROWS])
def test_a_german_command_does_what_the_table_says(text: str, wanted: str) -> None:
    assert in_words(asked(text, GERMAN)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("turn off the kitchen lights", "light.turn_off light.kitchen_ceiling light.kitchen_counter"),
        ("Kitchen lights off, please", "light.turn_off light.kitchen_ceiling light.kitchen_counter"),
        ("Could you please turn the kitchen counter on?", "light.turn_on light.kitchen_counter"),
        ("turn on the counter light", "light.turn_on light.kitchen_counter"),
        ("turn off the bedroom fan", MODEL),
        ("turn off the bedroom fan light", "light.turn_off light.bedroom_fan_light"),
        ("turn on the bedroom light", MODEL),
        ("turn off the kitchen", MODEL),
        ("turn off everything", MODEL),
        ("turn on the garden lights", MODEL),
        ("turn on all the lights in the garden", "light.turn_on light.garden; switch.turn_on switch.shed"),
        ("make the kitchen ceiling blue", "light.turn_on light.kitchen_ceiling {\"color_name\": \"blue\"}"),
        ("make the kitchen counter light blue", MODEL),
        (
            "dim the kitchen lights to 30%",
            'light.turn_on light.kitchen_ceiling light.kitchen_counter {"brightness_pct": 30}',
        ),
        ("dim the hall light to 30%", MODEL),
        ("set the kitchen ceiling to 130%", MODEL),
        ("open the garage door", "cover.open_cover cover.garage"),
        ("close the blinds", "cover.close_cover cover.blinds"),
        ("lower the kitchen blinds", "cover.close_cover cover.blinds"),
        ("lock the front door", "lock.lock lock.front"),
        ("unlock the front door", "lock.unlock lock.front"),
        ("open the front door", MODEL),
        ("set the bedroom to 21 degrees", "climate.set_temperature climate.bedroom {\"temperature\": 21}"),
        ("set the bedroom to 70 degrees", MODEL),
        ("turn down the tv", "media_player.volume_down media_player.tv"),
        ("turn the volume of the tv to 30 percent", "media_player.volume_set media_player.tv {\"volume_level\": 0.3}"),
        ("next song on the tv", "media_player.media_next_track media_player.tv"),
        ("activate the film scene", MODEL),
        ("start film", MODEL),
        ("turn off the kettle", "switch.turn_off switch.kettle"),
        ("turn off the kettle power", MODEL),
        ("don't turn off the kettle", MODEL),
        ("turn off the kettle and the hall light", MODEL),
        ("turn off the kettle. Then call mum", MODEL),
        ("turn off the kettle for", MODEL),
        ("dim the kitchen lights to", MODEL),
        ("open the garage door to 50%", MODEL),
        ("kitchen, lights off", MODEL),
        ("turn everything off the TV", MODEL),
        ("is the kettle on off?", MODEL),
        ("turn off every light in the kitchen", "light.turn_off light.kitchen_ceiling light.kitchen_counter"),
        ("turn off the kettle in 5 minutes", MODEL),
        ("turn off the kettle at 8", MODEL),
        ("if it boils turn off the kettle", MODEL),
        ("turn off all lights except the hall light", MODEL),
        ("is the kettle off?", "state switch.kettle"),
        ("how do I turn off the kettle?", MODEL),
        ("turn off the kettle?", MODEL),
        ('she said "turn off the kettle"', MODEL),
        ("write a story: turn off the kettle", MODEL),
        ("turn off a light", MODEL),
        ("turn off this light", MODEL),
        ("turn off", MODEL),
        ("", MODEL),
    ],
)  # fmt: skip
def test_an_english_command_does_what_is_certain(text: str, wanted: str) -> None:
    assert in_words(asked(text, ENGLISH)) == wanted


def test_what_two_entities_could_mean_is_neither_and_a_room_makes_it_certain() -> None:
    lamps = [entity(f"light.{room}", "Bedside lamp", room, "on") for room in ("attic", "study")]
    house = house_of(lamps, rooms("Attic", "Study"))
    assert asked("turn off the bedside lamp", house) is None
    assert in_words(asked("turn off the bedside lamp in the study", house)) == "light.turn_off light.study"
    assert in_words(asked("turn off the attic bedside lamp", house)) == "light.turn_off light.attic"


def test_a_room_may_be_called_as_a_kind_of_device_or_as_an_article() -> None:
    lamps = [
        entity("light.a", "Ceiling", "garage"),
        entity("light.b", "Spot", "den"),
        entity("light.c", "Ball", "hall"),
    ]
    house = house_of(lamps, rooms("Garage", "Den", "Hall"))
    for said, id in (("turn on the garage lights", "light.a"), ("turn on the lights in the den", "light.b")):
        assert in_words(asked(said, house)) == f"light.turn_on {id}"


def test_a_word_for_a_kind_means_all_of_the_house_or_nothing() -> None:
    covers = [entity("cover.a", "Shutter", "attic"), entity("cover.b", "Roller", "hall", device_class="shutter")]
    house = house_of(covers, rooms("Attic", "Hall"))
    assert asked("open the shutter", house) is None
    assert in_words(asked("open all shutters", house)) == "cover.open_cover cover.a cover.b"
    assert in_words(asked("open the shutter in the attic", house)) == "cover.open_cover cover.a"


def test_two_readings_that_differ_are_neither() -> None:
    things = [entity("lock.gate", "Gate", "garden"), entity("cover.a", "Lock gate", "garden", device_class="gate")]
    house = house_of(things, rooms("Garden"))
    assert asked("open lock gate", house) is None
    assert in_words(asked("unlock gate", house)) == "lock.unlock lock.gate"


def test_two_rooms_of_one_name_are_no_place() -> None:
    areas = rooms("Bath", floor="a") + [area for area in rooms("Bath 2|Bath", floor="b")]
    house = house_of([entity("fan.one", "Fan", "bath"), entity("fan.two", "Fan", "bath_2")], areas)
    assert asked("turn on the bath fan", house) is None


def test_nothing_is_done_to_what_the_person_may_not_move() -> None:
    may = {"light.kitchen_ceiling"}
    for text, is_done in (("turn off the kitchen lights", False), ("turn off the kitchen ceiling", True)):
        assert (asked(text, ENGLISH, lambda one: one.id in may) is not None) == is_done
    assert asked("is the kettle on?", ENGLISH, lambda one: one.id in may) is None


def test_the_answer_names_what_was_moved_and_what_does_not_answer() -> None:
    done = asked("Mach das Licht in der Küche aus", GERMAN)
    assert done is not None
    assert done.done == "Ausgeschaltet: Arbeitsplatte (Küche), Deckenlicht (Küche)."
    garden = asked("turn on all the lights in the garden", ENGLISH)
    assert garden is not None
    assert garden.done == "Turned on: Shed lights (Garden). Not reachable: Garden lights."


def test_a_name_is_shown_as_text_and_never_as_a_link() -> None:
    bad = entity("light.spot", "Spot ![x](http://eve.example/p.png) <b>*hi*</b>", "kitchen", "on")
    found = asked("turn off the kitchen lights", house_of([bad], rooms("Kitchen")))
    assert found is not None
    assert found.done == "Turned off: Spot x http eve.example p.png b hi b (Kitchen)."


HOUSES = st.sampled_from([ENGLISH, GERMAN])
WORDS = sorted(
    {word for house in (ENGLISH, GERMAN) for one in house.entities.values() for word in normal(one.name).split()}
    | {
        "turn",
        "on",
        "off",
        "the",
        "mach",
        "an",
        "aus",
        "in",
        "im",
        "lights",
        "licht",
        "all",
        "alle",
        "to",
        "30%",
        "auf",
    }
    | {word for house in (ENGLISH, GERMAN) for area in house.areas.values() for word in normal(area.name).split()}
)
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@given(HOUSES, st.one_of(st.text(max_size=80), SENTENCES))
def test_any_text_is_read_without_a_fault(house: House, text: str) -> None:
    assert asked(text, house) is None or may_be_command(text)


@given(HOUSES, SENTENCES, st.sets(st.sampled_from([*ENGLISH.entities, *GERMAN.entities])))
def test_only_what_is_allowed_is_ever_moved(house: House, text: str, allowed: set[str]) -> None:
    found = asked(text, house, lambda one: one.id in allowed)
    assert found is None or {id for order in found.orders for id in order.ids} <= allowed


_DOUBTS = """
not never no none neither nor dont cannot without except excluding besides but unless if whether when whenever while
until till once after before because since then later soon tomorrow tonight each hour hours minute minutes second
seconds oclock and or maybe perhaps pretend imagine suppose almost nearly instead undo cancel forget again always only
just also both either half nicht nie niemals kein keine keinen keinem keiner keines ohne ausser bis wenn falls sobald
sofern solange nachdem nach bevor vor wahrend weil damit dann danach anschliessend spater bald morgen heute abend uhr
stunde stunden minuten sekunde sekunden und oder sondern aber vielleicht eventuell fast statt stattdessen jeden jeder
jedes immer nur auch beide beiden sowie ob als hatte ware wurde nein nee doch
"""
DOUBTS = _DOUBTS.split()
SURE = [row for row in GERMAN_ROWS if row[1] != MODEL]


@given(st.sampled_from(SURE), st.sampled_from(DOUBTS), st.data())
def test_a_word_of_doubt_anywhere_leaves_it_to_the_model(row: tuple[str, str], doubt: str, data: st.DataObject) -> None:
    words = row[0].split()
    words.insert(data.draw(st.integers(0, len(words))), doubt)
    assert asked(" ".join(words), GERMAN) is None


@given(st.sampled_from(SURE), st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=8), st.data())
def test_a_word_that_nobody_knows_leaves_it_to_the_model(row: tuple[str, str], word: str, data: st.DataObject) -> None:
    words = row[0].split()
    words.insert(data.draw(st.integers(0, len(words))), f"x{word}x")
    assert asked(" ".join(words), GERMAN) is None


@given(st.sampled_from([*GERMAN.entities.values()]))
def test_a_name_alone_moves_nothing_else(one: object) -> None:
    name = one.name  # type: ignore[attr-defined]
    found = asked(f"Schalte {name} aus", GERMAN)
    ids = {id for order in found.orders for id in order.ids} if found else set()
    told = set(normal(name).split())
    assert all(told & ({*normal(GERMAN.entities[id].name).split()} | {"heizung", "rollladen"}) for id in ids)
