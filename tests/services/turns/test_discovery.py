"""What a model finds that looks for a tool in words that only point at what the person said."""

import pytest

from tests.living_house import LivingHouse
from tests.scripted_server import ScriptedServer, Use, rule

WISH = "what did I put on the shopping list"


@pytest.mark.parametrize(
    ("texts", "query"),
    [((WISH,), "that tool"), ((WISH, "yes do that"), "do that"), ((WISH,), "show the items of the shopping list")],
    ids=["this message", "the one before", "nothing to add"],
)
async def test_a_search_that_only_points_finds_what_the_person_wants(
    house: LivingHouse, scripted: ScriptedServer, texts: tuple[str, ...], query: str
) -> None:
    scripted.rules = [rule(texts[-1], Use("tools_discover", {"query": query}, is_blind=True), "Here it is.")]
    await house.connect(scripted)
    cid = await house.conversation()
    for text in texts:
        await house.say(cid, text)
    found = [one for one in await house.events(cid, "tool.result") if one.payload.get("name") == "tools_discover"]
    assert "task_list(" in str([one.payload for one in found])
