"""Any schema of a server's becomes one that every provider takes; calls are checked by what the server said."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from cortex.toolkit.mcp import McpServer, McpTool, mcp_category, mcp_tool, tool_names

KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
WORDS = {
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
}
TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def deep(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        made = {"type": "object", "properties": {"inner": made}, "required": ["inner"]}
    return made


OBJECT = {"type": "object"}
ODD: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "empty": {},
    "a list": [1],
    "a text": "object",
    "no type": {"properties": {"a": {"type": "string"}}},
    "types": {"type": ["object", "null"], "properties": {"a": {"type": ["string", "integer", "null"]}}},
    "type string": {"type": "string", "enum": ["x"]},
    "unknown types": {**OBJECT, "properties": {"a": {"type": "file"}, "b": {"type": ["any", 3]}, "c": {"type": None}}},
    "top ref": {"$ref": "#/$defs/a", "$defs": {"a": {**OBJECT, "properties": {"b": {"type": "string"}}}}},
    "recursive": {**OBJECT, "properties": {"a": {"$ref": "#"}, "b": {"type": "array", "items": {"$ref": "#"}}}},
    "tree": {"$ref": "#/$defs/n", "$defs": {"n": {**OBJECT, "properties": {k: {"$ref": "#/$defs/n"} for k in "abcd"}}}},
    "ref to itself": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "external ref": {**OBJECT, "properties": {"a": {"$ref": "https://example.org/a.json"}, "b": {"$ref": 3}}},
    "draft 04": {"id": "x", **OBJECT, "properties": {"a": {"type": "integer", "minimum": 1, "exclusiveMinimum": True}}},
    "draft 2020": {
        **OBJECT,
        "$dynamicRef": "#a",
        "unevaluatedProperties": False,
        "dependentSchemas": {"a": {}},
        "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}], "contains": True}},
    },
    "boolean parts": {**OBJECT, "properties": {"a": True, "b": False, "c": {"type": "array", "items": True}}},
    "words as names": {
        **OBJECT,
        "properties": {
            "$ref": {"type": "string"},
            "type": {"type": "string"},
            "properties": {"type": "object"},
            "required": {"type": "boolean"},
            "$defs": {},
            "title": {},
        },
    },
    "odd names": {
        **OBJECT,
        "properties": {
            "$filter": {"type": "string"},
            "filter": {},
            "a b": {},
            "größe": {},
            "a/b": {},
            "x" * 90: {},
            "": {},
            "a\nb": {},
        },
        "required": ["$filter", "größe", 7, None],
    },
    "enums": {
        **OBJECT,
        "properties": {
            "a": {"enum": []},
            "b": {"enum": ["x", 1, None, True, 2.5]},
            "c": {"enum": [1, 2]},
            "d": {"type": "string", "enum": ["", "x"]},
            "e": {"const": 3},
            "f": {"enum": [[1], {}]},
            "g": {"enum": "x"},
        },
    },
    "no items": {**OBJECT, "properties": {"a": {"type": "array"}, "b": {"type": "array", "items": [{}, {}]}}},
    "patterns": {
        **OBJECT,
        "patternProperties": {"^(?<!x)a(?=b)": {}},
        "additionalProperties": False,
        "properties": {"a": {"type": "string", "pattern": "(((", "format": "made-up"}},
    },
    "numbers": {
        **OBJECT,
        "properties": {
            "a": {"type": "integer", "minimum": 10**400, "maximum": float("inf")},
            "b": {"type": "string", "minLength": -5, "maxLength": 10**9},
            "c": {"type": "number", "multipleOf": 0},
            "d": {"type": "array", "items": {}, "minItems": 99_999, "maxItems": float("nan")},
        },
    },
    "top choices": {"oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"]}]},
    "top all": {
        **OBJECT,
        "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"not": {}}],
        "not": {"required": ["z"]},
        "if": {},
        "then": False,
    },
    "nested choices": {
        **OBJECT,
        "properties": {
            "a": {"anyOf": [{}, {"type": "null"}]},
            "b": {"oneOf": [True, False]},
            "c": {"allOf": [{"type": "string"}, {"minLength": 2}]},
            "d": {
                "type": "object",
                "anyOf": [{"required": ["x"]}, {"required": ["y"]}],
                "properties": {"x": {}, "y": {}},
            },
        },
    },
    "maps": {**OBJECT, "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}},
    "deep": deep(100),
    "wide": {
        **OBJECT,
        "properties": {f"p{n}": {"type": "string", "description": "x" * 50} for n in range(5_000)},
        "required": ["p4999"],
    },
    "wordy": {**OBJECT, "properties": {"a": {"type": "string", "description": "x" * 500_000, "title": 4}}},
    "odd words": {
        **OBJECT,
        "properties": {"a": {"type": "string", "description": 7, "default": {"a": 1}, "examples": 3}},
    },
    "odd parts": {**OBJECT, "properties": [1], "required": "a", "items": 4, "anyOf": {}, "allOf": [], "enum": {}},
}


def refused(node: Any, at: str = "") -> list[str]:
    """What some provider would refuse of it, wherever it stands."""
    found = [f"{at}: {word}" for word in node if word not in WORDS]
    kind = node.get("type")
    if "anyOf" in node:
        found += [f"{at}: more beside anyOf"] if set(node) - {"anyOf", "description"} else []
        found += [f"{at}: no choice"] if not node["anyOf"] else []
    elif kind not in TYPES:
        found.append(f"{at}: type {kind!r}")
    found += [f"{at}: array without items"] if kind == "array" and "items" not in node else []
    choices = node.get("enum", ["x"])
    found += (
        [f"{at}: enum {choices}"] if not choices or not all(isinstance(one, str) and one for one in choices) else []
    )
    found += [f"{at}: {name!r}" for name in node.get("properties", {}) if not KEY.fullmatch(name)]
    found += [f"{at}: requires {name}" for name in node.get("required", ()) if name not in node.get("properties", {})]
    found += [
        f"{at}: {word} {node[word]}" for word in ("maxItems", "maxLength", "minItems") if node.get(word, 0) > 1_000
    ]
    below = [*node.get("properties", {}).items(), *enumerate(node.get("anyOf", ()))]
    below += [("items", node["items"])] if "items" in node else []
    return found + [fault for name, part in below for fault in refused(part, f"{at}.{name}")]


def made(schema: Any, words: str = "") -> Any:
    return mcp_tool(McpServer(name="shop"), McpTool.of({"name": "sell", "inputSchema": schema}, words))


def is_taken(schema: dict[str, Any]) -> None:
    assert schema["type"] == "object"
    assert "anyOf" not in schema
    assert refused(schema) == []
    Draft202012Validator.check_schema(schema)
    assert len(json.dumps(schema, allow_nan=False)) < 60_000


@pytest.mark.parametrize("name", ODD)
def test_each_odd_schema_becomes_one_that_every_provider_takes(name: str) -> None:
    for words in ("", "Sells."):
        tool = made(ODD[name], words)
        is_taken(tool.full.parameters)
        assert len(tool.full.description) <= 1_024


NAMES = st.sampled_from(["a", "b", "$ref", "a b", "type", "é"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("object"))
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "anyOf",
                    "oneOf",
                    "allOf",
                    "enum",
                    "required",
                    "$ref",
                    "const",
                    "default",
                    "description",
                    "minimum",
                    "maxItems",
                    "additionalProperties",
                ]
            ),
            inner
            | st.dictionaries(NAMES, inner, max_size=3)
            | st.sampled_from(["string", "array", "#/properties/a", "#"]),
            max_size=5,
        ),
    ),
    max_leaves=25,
)


@given(SCHEMAS)
@settings(max_examples=150, deadline=None)
def test_whatever_a_server_sends_every_provider_takes_what_is_made_of_it(schema: Any) -> None:
    is_taken(made(schema).full.parameters)


def checks(schema: Any, arguments: dict[str, Any]) -> str:
    try:
        made(schema).arguments.model_validate(arguments)
    except ValidationError as error:
        return str(error)
    return ""


def test_a_call_is_checked_by_all_that_the_server_said_not_by_the_hint_alone() -> None:
    either = {
        "oneOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "integer", "exclusiveMinimum": 2}}, "required": ["b"]},
        ]
    }
    assert checks(either, {"a": "x"}) == checks(either, {"b": 3}) == ""
    assert "valid under any" in checks(either, {})
    assert "valid under any" in checks(either, {"b": 2})
    counted = {**OBJECT, "properties": {"n": {"type": "array", "items": {}, "maxItems": 2_000}, "k": {"enum": [1, 2]}}}
    assert "n: [0, 0" in checks(counted, {"n": [0] * 2_001})
    assert "not one of" in checks(counted, {"k": 3})


def test_an_argument_that_is_called_otherwise_for_models_keeps_its_name_for_its_server() -> None:
    schema = {
        **OBJECT,
        "properties": {"$filter": {"type": "string"}, "filter": {"type": "integer"}},
        "required": ["$filter"],
        "additionalProperties": False,
    }
    assert set(made(schema).full.parameters["properties"]) == {"filter", "filter_2"}
    assert "'$filter'" in made(schema).full.parameters["properties"]["filter_2"]["description"]
    assert checks(schema, {"filter_2": "x", "filter": 3}) == checks(schema, {"$filter": "x"}) == ""
    assert "$filter" in checks(schema, {"filter": 3})


def test_no_two_tools_of_a_server_are_called_the_same_and_all_as_providers_take_it() -> None:
    given = ["get.user", "get_user", "get user", "検索", "削除", "x" * 200, "x" * 201, "a/b", "9", "-"]
    for server in ("shop", "größe", "7zip", "-"):
        names = tool_names(server, given)
        assert len(set(names.values())) == len(given)
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", one) for one in names.values()), names
    assert tool_names("shop", given)["get_user"] == "shop_get_user"
    tools = [McpTool(name=name, schema={}) for name in ("検索", "削除")]
    category = mcp_category(McpServer(name="shop"), tools, given)
    assert {one.name for one in category.tools} == {tool_names("shop", given)[name] for name in ("検索", "削除")}


TAKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": {"type": "integer"}}, {"xa": "b"}),
    ({"properties": {"n" * 150: {"type": "string"}}, "additionalProperties": {"type": "integer"}}, {"n" * 150: "b"}),
    ({"properties": {"a": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}}}, {"a": [1, "b"]}),
    ({"properties": {"a": {"enum": ["\u2764\ufe0f", "b\u200bc"]}}}, {"a": "\u2764\ufe0f"}),
    (
        {
            "properties": {"a": {"$ref": "#/$defs/b", "properties": {"c": {}}}},
            "$defs": {"b": {"properties": {"d": {}}, "additionalProperties": False}},
        },
        {"a": {"d": 1}},
    ),
]


@pytest.mark.parametrize(("schema", "arguments"), TAKEN)
def test_a_call_that_the_servers_own_schema_takes_is_taken(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    Draft202012Validator(schema).validate(arguments)
    made = mcp_tool(McpServer(name="s"), McpTool(name="t", schema=schema))
    made.arguments.model_validate(arguments)
    unknown = {"properties": {"a": {"type": ["string", "any"]}}}
    mcp_tool(McpServer(name="s"), McpTool(name="t", schema=unknown)).arguments.model_validate({"a": 5})
