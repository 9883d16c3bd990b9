"""What a server lists is read entry by entry: one that cannot be used is named with the reason, the others work."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import UserError
from cortex.integrations.mcp.listed import ToolPages
from cortex.ports.mcp import LEFT_OUT
from cortex.services.integrations.mcp import Choice
from tests.living_house import living_house
from tests.mcp_house import McpHouse, listed
from tests.services.integrations.test_mcp_servers import NO_SANDBOX
from tests.toolkit.test_wire_schema import ODD, refused

pytestmark = pytest.mark.skipif(NO_SANDBOX, reason="no sandbox works on this machine")


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[McpHouse]:
    async with living_house(tmp_path / "home") as house:
        yield McpHouse(house, tmp_path / "shop")


def odd_tools() -> list[dict[str, Any]]:
    return [{"name": f"odd {name}", "inputSchema": schema} for name, schema in ODD.items()]


USELESS: list[Any] = [
    None,
    [],
    {"description": "no name"},
    {"name": 7, "inputSchema": {}},
    {"name": ""},
    {"name": "x" * 300, "inputSchema": {}},
    {"name": "new\nline", "inputSchema": {}},
    listed("sell", "The second of this name."),
    listed("huge", "x" * 500_000),
]
LENIENT: list[Any] = [
    {"name": "no schema"},
    {"name": "null", "description": None, "inputSchema": None, "title": None, "annotations": None, "icons": None},
    {"name": "wrong", "description": 5, "inputSchema": [], "title": [], "annotations": "x", "outputSchema": "x"},
    {"name": "odd hints", "inputSchema": {}, "annotations": {"readOnlyHint": "yes", "title": 4, "x": {}}},
    {"name": "more", "inputSchema": {}, "icons": [{"src": 4}], "_meta": "x", "execution": 4, "outputSchema": True},
    {"name": "a.b/c d", "inputSchema": {}},
    {"name": "検索", "inputSchema": {}},
    {"name": "y" * 200, "inputSchema": {}},
]


def test_what_is_pinned_of_an_ordinary_tool_is_what_it_was_before_so_that_it_stays_allowed() -> None:
    given = listed("sell", "Sells.", is_read=True, title="Sell")
    found = ToolPages()
    found.take({"tools": [{**given, "outputSchema": {"type": "object"}, "icons": [], "_meta": {"a": 1}}]})
    assert found.tools == {"sell": given}


async def test_no_entry_of_a_list_costs_the_others(shop: McpHouse) -> None:
    await shop.set_up(listed("sell", is_read=True))
    shop.lists(listed("sell", is_read=True), *odd_tools(), *LENIENT, *USELESS)
    cortex, ada = shop.house.cortex, shop.house.admin
    count = await cortex.mcp_tools.look(ada, "shop")
    seen = {one.row.name: one for one in await cortex.mcp_tools.tools("shop")}
    left_out = {name: one.left_out for name, one in seen.items() if one.left_out}
    assert len(left_out) == len(USELESS) + 2  # and two schemas that are too long
    assert "two tools" in left_out["sell (2)"]
    assert "500," in left_out["huge"]
    assert all(why.endswith(".") for why in left_out.values())
    assert count == 1 + len(ODD) - 2 + len(LENIENT)
    await shop.allow_usable()
    permitted = await shop.permitted()
    tools = cortex.runtime.registry.tools
    assert {one.tool.name for one in seen.values() if not one.left_out} <= permitted
    assert await shop.call("sell", say="12 hinges") == "12 hinges"
    assert await shop.call("a.b/c d", say="odd") == "odd"
    wire = [tools[name] for name in permitted if name.startswith("shop_")]
    assert [fault for tool in wire for fault in refused(tool.full.parameters)] == []
    conversation = await shop.house.conversation()
    await shop.house.say(conversation, "sell twelve hinges")  # and messages go on


async def test_what_is_left_out_cannot_be_allowed(shop: McpHouse) -> None:
    await shop.set_up(listed("sell"))
    shop.lists(listed("huge", "x" * 500_000))
    cortex, ada = shop.house.cortex, shop.house.admin
    await cortex.mcp_tools.look(ada, "shop")
    (seen,) = [one for one in await cortex.mcp_tools.tools("shop") if one.row.name == "huge"]
    assert LEFT_OUT in (seen.row.seen or {})
    choice = Choice(name="huge", digest=seen.row.seen_digest, is_allowed=True)
    with pytest.raises(UserError, match="huge cannot be used: It is described in 500,"):
        await cortex.mcp_tools.choose(ada, "shop", [choice])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a":' * 500 + "1" + "}" * 500, id="500 levels"),
        pytest.param('{"a":' * 50_000 + "1" + "}" * 50_000, id="50,000 levels"),
        pytest.param('{"default": "\\ud800"}', id="half a surrogate"),
        pytest.param('{"default": ' + "9" * 9_000 + "}", id="a number of 9,000 digits"),
        pytest.param('{"default": NaN, "minimum": -Infinity}', id="no number"),
        pytest.param('{"default": "\\u0000"}', id="a zero character"),
    ],
)
async def test_json_that_no_parser_takes_costs_no_other_tool(shop: McpHouse, text: str) -> None:
    await shop.set_up(listed("sell", is_read=True))
    listing = shop.folder / "listing.json"
    listing.write_text(f'[{json.dumps(listed("sell", is_read=True))}, {{"name": "odd", "inputSchema": {text}}}]')
    assert await shop.house.cortex.mcp_tools.look(shop.house.admin, "shop") == 2
    assert await shop.call("sell", say="fine") == "fine"


async def test_a_list_without_end_is_read_as_far_as_it_goes(shop: McpHouse) -> None:
    await shop.set_up(listed("sell", is_read=True))
    cortex, ada = shop.house.cortex, shop.house.admin
    for cursor in ("the same", "another"):
        (shop.folder / "cursor").write_text(cursor)
        await cortex.mcp_tools.look(ada, "shop")
        seen = {one.row.name: one.left_out for one in await cortex.mcp_tools.tools("shop")}
        assert "no end" in seen["(more)"]
        assert seen["sell"] == ""
        assert await shop.call("sell", say="fine") == "fine"


async def test_more_tools_than_are_read_are_told(shop: McpHouse) -> None:
    await shop.set_up(listed("sell", is_read=True))
    shop.lists(listed("sell", is_read=True), *(listed(f"t{n}") for n in range(1_500)))
    assert await shop.house.cortex.mcp_tools.look(shop.house.admin, "shop") == 1_000
    seen = {one.row.name: one.left_out for one in await shop.house.cortex.mcp_tools.tools("shop")}
    assert "1,000 tools" in seen["(more)"]
