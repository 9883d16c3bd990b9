"""A tool as one text: what of it is read for its meaning, whatever its schema looks like."""

from typing import Any

import pytest
from msgspec.structs import replace

from cortex.selection.index.tool_words import worded
from tests.selection.made import entry


def text_of(properties: Any, description: str = "Brew a pot") -> str:
    made = entry("tea_brew", "kitchenThings", description)
    return worded(replace(made, full=replace(made.full, parameters={"type": "object", "properties": properties})))


def test_it_holds_name_description_arguments_values_and_category() -> None:
    kind = {"type": "string", "description": "What is brewed.", "enum": ["black_tea", "rooibos", 3, None]}
    said = text_of({"teaKind": kind, "cups": {"type": "integer"}})
    assert said == "tea brew: Brew a pot\ntea Kind What is brewed black tea rooibos\ncups\nkitchen Things"


@pytest.mark.parametrize(
    "node", [True, None, {}, {"description": 7}, {"enum": "red"}, {"enum": None}, {"description": None, "enum": []}]
)
def test_an_odd_schema_is_read_as_far_as_it_goes(node: Any) -> None:
    assert text_of({"colour": node}) == "tea brew: Brew a pot\ncolour\nkitchen Things"


def test_a_line_that_only_says_the_name_again_is_left_out() -> None:
    assert text_of({}, "Tea brew\nBrew a pot").startswith("tea brew: Brew a pot\n")
