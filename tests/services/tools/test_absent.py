"""Everyday messages on a fresh installation, where nothing outside is set up: which of them are told of that."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.lacking import PERHAPS, is_named, note_on, noted_in
from cortex.base.model import OFFLINE
from cortex.base.role import Channel
from cortex.storage.tool_settings import ToolWordRow
from tests.living_house import LivingHouse, living_house

WISHES = Path(__file__).with_name("wishes.txt")
VAGUE = "is the house empty"

NOTHING = """\
what can I cook with leeks and eggs
what time is it
thanks, that was helpful
never mind
good morning
how do I boil an egg
explain how a heat pump works
what is the difference between a switch and a router
give me three names for a grey cat
remind me at six to take the bins out
add milk and bread to my shopping list
what's on my to-do list
write a poem about the sea in winter
make this sentence friendlier: send me the report today
note that the spare key is under the flowerpot
what does the word serendipity mean
what's 17% of 2350
every weekday at seven tell me my tasks
summarise this text: the committee met on Tuesday and agreed to paint the hall green
read https://example.org/recipe and tell me the oven temperature
can you help me plan a birthday party for a six-year-old?
Was koche ich mit Lauch und Eiern?
Wie spät ist es?
Erinnere mich morgen um acht an den Zahnarzt
explique-moi la photosynthèse en trois phrases
rappelle-moi d'appeler maman à 18 h
¿qué puedo cocinar con puerros y huevos?
scrivimi una poesia sulla pioggia
hoe kook ik een zacht eitje?
me conte uma piada
""".splitlines()
FIRST = """\
hi, who are you and what can you do?
what's the capital of Slovenia
we're out of coffee, put it on the list
I need to call the dentist on Monday
what should we have for dinner, we have rice and carrots
how long do I bake a potato
write a birthday card for my sister who turns forty
translate "where is the station" into Italian
my son has a spelling test on Friday, give me ten hard words
remember that Mia is allergic to nuts
what do you know about me?
remind me every evening at nine to take my pill
what's on today?
how many days until Christmas
convert 180 celsius to fahrenheit
plan a weekend in Porto with two kids
explain what a mortgage is to a ten-year-old
I feel a bit down today
tell me a story about a fox and a lighthouse
is it better to rent or to buy a flat?
make a packing list for the beach
what's a good name for a grey kitten
help me write an email to my landlord about the broken heating
proofread: Their going to they're house over there
every Sunday at six ask me what we need for the week
which list did I put the screws on?
can you keep a secret?
what's the difference between baking soda and baking powder
Schreib eine Entschuldigung für die Schule, Mia ist krank
qu'est-ce que je peux faire avec des courgettes""".splitlines()
NEEDS = """\
turn off the kitchen lights = Home Assistant
is the garage door open? = Home Assistant
set the living room to 21 degrees = Home Assistant
dim the bedroom lamp to 30 percent = Home Assistant
lock the front door = Home Assistant
schalte das Licht im Flur aus = Home Assistant
mach die Rollläden im Schlafzimmer zu = Home Assistant
éteins la lumière du salon = Home Assistant
enciende la luz de la cocina = Home Assistant
spegni le luci del soggiorno = Home Assistant
doe het licht in de keuken uit = Home Assistant
apague as luzes da sala = Home Assistant
search the web for reviews of the Pixel 12 = Web search
look up online when the Louvre closes today = Web search
google the train times from Leeds to York = Web search
busca en internet el precio de la gasolina = Web search
zoek op internet naar de openingstijden van het museum = Web search
pesquise na internet o preço do dólar hoje = Web search
send an e-mail to anna@example.org that I will be late = E-mail
schick eine E-Mail an anna@example.org, dass ich später komme = E-mail
envoie un e-mail à paul@example.org pour confirmer le rendez-vous = E-mail
manda un correo a luis@example.org con la dirección = E-mail
what did they write in the talk room today? = Nextcloud Talk
send a message to the Family room on Nextcloud = Nextcloud Talk
query the Aether database: how many orders were placed in May? = Aether DB
show me the columns of the table customers in the database = Aether DB
e-mail the guest list to ben@example.org = E-mail
have aider fix the failing test in cortex = Coding agent
let the coding agent fix the failing login test in aether_api = Coding agent
lass aider in cortex den Test reparieren = Coding agent
""".splitlines()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def titles(house: LivingHouse, texts: list[str], *, role: str = "orchestrator") -> list[str]:
    """What the admin's receipt of each message names as missing."""
    found = [await house.cortex.tools.explain(house.admin, role, text) for text in texts]
    return [receipt.get("setup", {}).get("title", "") for receipt in found]


async def test_thirty_messages_that_need_nothing_of_it_are_not_told(house: LivingHouse) -> None:
    found = await titles(house, NOTHING)
    assert len(NOTHING) == 30
    assert {text: title for text, title in zip(NOTHING, found, strict=True) if title} == {}


@pytest.mark.parametrize("role", ["orchestrator", "chat"])
async def test_thirty_first_messages_are_told_of_nothing_and_nothing_is_kept_ready_to_be_told(
    house: LivingHouse, role: str
) -> None:
    """Written once the weights stood, as people begin with an assistant; none was looked at before."""
    found = [await house.cortex.tools.explain(house.admin, role, text) for text in FIRST]
    assert len(FIRST) == 30
    assert [receipt for receipt in found if "setup" in receipt or PERHAPS in receipt] == []


async def test_thirty_messages_that_need_it_are_told_of_the_right_system(house: LivingHouse) -> None:
    wishes = [line.split(" = ") for line in NEEDS]
    found = await titles(house, [text for text, _ in wishes])
    assert len(wishes) == 30
    wrong = {text: title for (text, wanted), title in zip(wishes, found, strict=True) if title != wanted}
    assert wrong == {}


async def test_a_push_needs_nothing_to_be_set_up(house: LivingHouse) -> None:
    assert await titles(house, ["send a push notification to my phone that the cake is done"]) == [""]


@pytest.mark.parametrize(("part", "most_wrong", "least_right"), [("first", 3, 25), ("second", 6, 18)])
async def test_few_messages_of_every_day_are_told_of_what_they_do_not_need(
    house: LivingHouse, part: str, most_wrong: int, least_right: int
) -> None:
    """Drafts, questions of knowledge and wishes in seven languages, labelled before anything was measured."""
    lines = WISHES.read_text(encoding="utf-8").partition(f"[{part}]\n")[2].partition("\n\n")[0].splitlines()
    pairs = [line.rpartition(" =") for line in lines]
    found = await titles(house, [text for text, _, _ in pairs])
    told = [(title, wanted.strip()) for title, (_, _, wanted) in zip(found, pairs, strict=True)]
    assert len(told) == 60
    assert sum(title not in ("", wanted) or bool(title) > bool(wanted) for title, wanted in told) <= most_wrong
    assert sum(title == wanted != "" for title, wanted in told) >= least_right


async def test_what_is_perhaps_meant_waits_for_the_answer(house: LivingHouse) -> None:
    receipt = await house.cortex.tools.explain(house.admin, "orchestrator", VAGUE)
    assert "setup" not in receipt
    assert receipt[PERHAPS]["title"] == "Home Assistant"
    assert receipt["notes_tokens"] == 0


async def test_a_phrase_of_this_server_counts_in_full_whatever_it_reads_like(house: LivingHouse) -> None:
    assert await titles(house, ["good night, sleep well"]) == [""]
    phrase = ToolWordRow(
        category="ha", kind="phrase", text="good night", text_key="good night", tools=("ha_call_service",)
    )
    await house.cortex.tool_settings.save_words(house.admin, "ha", [phrase])
    assert await titles(house, ["good night, sleep well"]) == ["Home Assistant"]


@pytest.mark.parametrize("role", ["orchestrator", "coder", "admin"])
async def test_aider_is_spoken_of_in_every_role_of_an_admin(house: LivingHouse, role: str) -> None:
    assert await titles(house, ["have aider fix the failing test in cortex"], role=role) == ["Coding agent"]


async def test_once_it_is_set_up_another_role_hears_which_has_it(house: LivingHouse) -> None:
    await house.cortex.integrations.save(house.admin, "coding", "", {}, is_new=True)
    receipt = await house.cortex.tools.explain(house.admin, "orchestrator", "have aider fix the failing test in cortex")
    assert all(part in receipt["setup"]["text"] for part in ("aider_run", "role coder"))
    receipt = await house.cortex.tools.explain(house.admin, "coder", "have aider fix the failing test in cortex")
    assert "setup" not in receipt
    assert "aider_run" in [one["name"] for one in receipt["sent"]]


@pytest.mark.parametrize(
    ("wish", "tool"),
    [
        ("have aider fix the failing test in cortex", "aider_run"),
        ("send an e-mail to anna@example.org that I will be late", "email_send"),
        ("run `ls -la` in the shell", "shell_exec"),
    ],
)
async def test_a_member_hears_what_is_for_admins_and_nothing_of_how_it_stands(
    house: LivingHouse, wish: str, tool: str
) -> None:
    receipt = await house.cortex.tools.explain(house.member, "orchestrator", wish)
    assert all(part in receipt["setup"]["text"] for part in (tool, "admins only"))
    assert receipt["setup"]["page"] == ""
    assert tool not in {*receipt["reachable"], *(one["name"] for one in receipt["sent"])}


@pytest.mark.parametrize("wish", ["what's for dinner tonight", "what's for lunch", "what time is dinner"])
async def test_what_words_may_answer_brings_no_note_on_the_web(house: LivingHouse, wish: str) -> None:
    receipt = await house.cortex.tools.explain(house.admin, "orchestrator", wish)
    assert ("setup" in receipt, PERHAPS in receipt) == (False, False)


@pytest.mark.parametrize(
    ("wish", "tool"),
    [
        ("restart the server", "cortex_restart"),
        ("restart cortex", "cortex_restart"),
        ("run the backup script", "shell_exec"),
        ("merge the branch and tag a release", ""),
    ],
)
async def test_a_member_hears_of_the_tool_that_is_plainly_meant_or_of_none(
    house: LivingHouse, wish: str, tool: str
) -> None:
    receipt = await house.cortex.tools.explain(house.member, "orchestrator", wish)
    told = receipt.get("setup") or receipt.get(PERHAPS) or {}
    text = told.get("text", "")
    assert (tool in text, "admins only" in text, bool(text)) == (True, bool(tool), bool(tool))


async def test_a_member_is_told_no_more_than_an_admin(house: LivingHouse) -> None:
    found = [await house.cortex.tools.explain(house.member, "orchestrator", text) for text in NOTHING]
    assert [receipt["setup"]["text"] for receipt in found if "setup" in receipt] == []


def test_a_note_is_read_back_and_its_name_found_as_it_stands_there() -> None:
    assert noted_in(f"[Fri 10:00 UTC]\n{note_on('E-mail', 'not set up here')}").startswith("E-mail is")
    assert noted_in("(a remark that is in brackets.)") == ""
    assert is_named("E-mail", "Dafür fehlt „E-mail“ auf diesem Server.")
    assert not is_named("E-mail", "Here is your draft of an e-mail to Anna.")
    assert not is_named("Web search", "Web searches are of no use here.")


@pytest.mark.parametrize("channel", ["cron", "maker", "agent", "api", "result"])
async def test_where_nobody_looks_on_the_model_hears_it_and_no_other_role_is_named(
    house: LivingHouse, channel: Channel
) -> None:
    tools, user = house.cortex.tools, house.admin
    role = await house.cortex.roles.role(user, "orchestrator")

    async def noted(text: str) -> str:
        made = await tools.plan_turn(tools.opening(user, role, text).with_given(channel=channel))
        return noted_in(made.round.tail)

    assert (await noted("turn off the kitchen lights")).startswith("Home Assistant is")
    assert await noted("have aider fix the failing test in cortex") == ""


async def test_a_model_that_takes_no_tools_is_told_of_none(house: LivingHouse) -> None:
    entry = replace(OFFLINE, tools=False)
    receipt = await house.cortex.tools.explain(house.admin, "orchestrator", "turn off the kitchen lights", entry=entry)
    assert "setup" not in receipt
