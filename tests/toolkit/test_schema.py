"""A function's signature and docstring are all that a tool is made of."""

from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, Field, ValidationError

from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.json_schema import harmless
from cortex.toolkit.schema import canonical, forms, minify, read_docstring
from cortex.toolkit.spec import Tool


@tool()
async def note_add(
    ctx: Ctx,
    title: str,
    due: date | None = None,
    level: Literal["low", "high"] | None = None,
    tags: list[str] | None = None,
    count: Annotated[int, Field(ge=1, le=9)] = 1,
) -> str:
    """Add a note to the book.

    It is kept for ever.

    Args:
        title: What it is
            about.
        due: Its day.
        level: How grave.
        tags: Words for it.
        count: How many.
    """
    return title


def test_full_form_is_minified_sorted_and_hides_the_context() -> None:
    assert note_add.full.description == "Add a note to the book.\nIt is kept for ever."
    assert canonical(note_add.full.parameters) == snapshot(
        '{"additionalProperties":false,"properties":{"count":{"default":1,"description":"How many.","maximum":9,"minimum":1,"type":"integer"},"due":{"description":"Its day.","format":"date","type":["string","null"]},"level":{"description":"How grave.","enum":["low","high",null],"type":["string","null"]},"tags":{"description":"Words for it.","items":{"type":"string"},"type":["array","null"]},"title":{"description":"What it is about.","type":"string"}},"required":["title"],"type":"object"}'  # noqa: E501
    )


def test_stub_keeps_names_and_types_only() -> None:
    assert note_add.stub.description == "Add a note to the book."
    assert canonical(note_add.stub.parameters) == snapshot(
        '{"properties":{"count":{"type":"integer"},"due":{"type":["string","null"]},"level":{"enum":["low","high",null],"type":["string","null"]},"tags":{"items":{"type":"string"},"type":["array","null"]},"title":{"type":"string"}},"required":["title"],"type":"object"}'
    )


def test_line_is_name_and_summary() -> None:
    assert note_add.line == "note_add: Add a note to the book"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"title": "a", "other": 1},
        {"title": None},
        {"title": "a", "due": 5},
        {"title": "a", "due": "soon"},
        {"title": "a", "level": "middle"},
        {"title": "a", "count": 10},
        {"title": "a", "tags": "one"},
        {"title": "a", "ctx": {}},
    ],
    ids=["missing", "unknown", "null", "number-as-day", "word-as-day", "enum", "range", "no-list", "context"],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        note_add.arguments.model_validate(arguments)


def test_json_values_become_typed_ones() -> None:
    made = note_add.arguments.model_validate({"title": "a", "due": "2026-11-21"})
    assert made.due == date(2026, 11, 21)  # type: ignore[attr-defined]  # the model is made at run time


async def undocumented(ctx: Ctx, title: str) -> str:
    """Do a thing."""
    return title


async def unknown_word(ctx: Ctx) -> str:
    """Do a thing.

    Args:
        title: Not there.
    """
    return ""


async def long_summary(ctx: Ctx) -> str:
    """Do a thing that takes so very many words to tell that no list could hold this line."""
    return ""


async def without_context(title: str) -> str:
    """Do a thing.

    Args:
        title: A title.
    """
    return title


async def untyped(ctx: Ctx, title) -> str:  # type: ignore[no-untyped-def]  # the fault under test
    """Do a thing.

    Args:
        title: A title.
    """
    return str(title)


async def spread(ctx: Ctx, *title: str) -> str:
    """Do a thing.

    Args:
        title: A title.
    """
    return str(title)


async def silent(ctx: Ctx) -> str:
    return ""


@pytest.mark.parametrize(
    "function",
    [undocumented, unknown_word, long_summary, without_context, untyped, spread, silent],
    ids=lambda function: function.__name__,
)
def test_unfinished_tool_fails_at_import(function: Any) -> None:
    with pytest.raises(TypeError):
        forms(function, "thing")


def test_a_tool_must_be_async() -> None:
    def slow(ctx: Ctx) -> str:
        """Do a thing."""
        return ""

    with pytest.raises(TypeError, match="async"):
        tool()(slow)  # type: ignore[arg-type]  # the fault under test


def test_an_args_line_without_words_is_refused() -> None:
    with pytest.raises(TypeError, match="name: words"):
        read_docstring("Do it.\n\nArgs:\n    title\n", "thing")


def test_high_risk_asks_and_reads_are_idempotent() -> None:
    @tool(risk="high")
    async def thing_break(ctx: Ctx) -> str:
        """Break it."""
        return ""

    @tool(effect="read")
    async def thing_see(ctx: Ctx) -> str:
        """See it."""
        return ""

    made: list[Tool] = [thing_break, thing_see]
    assert [(one.confirm, one.idempotent) for one in made] == [(True, False), (False, True)]


class Inner(BaseModel):
    """Something nested."""

    size: int


class Outer(BaseModel):
    """Something that refers."""

    inner: Inner
    many: list[Inner] = []
    either: int | str = 1
    maybe: Inner | None = None


def test_references_are_laid_in_place() -> None:
    text = canonical(minify(Outer.model_json_schema()))
    assert "$ref" not in text
    assert "$defs" not in text
    assert '"title"' not in text
    assert '"anyOf":[{"type":"integer"},{"type":"string"}]' in text


@given(st.permutations(["a", "b", "c"]))
def test_the_order_of_definition_does_not_show(names: list[str]) -> None:
    properties = {name: {"type": "string", "title": name.upper()} for name in names}
    assert canonical(minify({"properties": properties, "type": "object"})) == (
        '{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"type":"object"}'
    )


def test_a_reference_finds_a_name_that_holds_a_slash_or_a_tilde() -> None:
    parts = {"a/b": {"type": "integer"}, "c~d": {"type": "boolean"}}
    properties = {"n": {"$ref": "#/$defs/a~1b"}, "flag": {"$ref": "#/$defs/c~0d"}}
    made = harmless({"type": "object", "$defs": parts, "properties": properties})
    assert {name: node["type"] for name, node in made["properties"].items()} == {"n": "integer", "flag": "boolean"}
