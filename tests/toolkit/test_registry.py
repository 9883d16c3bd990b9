"""The registry is whole, ordered and versioned, or it does not come up."""

from types import ModuleType

import pytest
from msgspec.structs import replace

from cortex import tools
from cortex.base import tokens
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.registry import Registry, category_of
from cortex.toolkit.spec import Category, Tool
from cortex.tools import load


@tool(needs=("Lens",))
async def star_find(ctx: Ctx) -> str:
    """Find a star."""
    return ""


@tool()
async def star_name(ctx: Ctx) -> str:
    """Name a star."""
    return ""


FIND, NAME = (replace(one, category="star") for one in (star_find, star_name))


def _module(**parts: object) -> ModuleType:
    module = ModuleType("cortex.tools.star")
    vars(module).update({"SUMMARY": "stars", **parts})
    return module


SKY = Category(name="star", summary="stars", tools=(FIND, NAME), needs=("Sky",))


def test_a_tool_is_configured_when_all_its_ports_are_wired() -> None:
    registry = Registry([SKY])
    assert registry.configured({"Sky"}) == {"star_name"}
    assert registry.configured({"Sky", "Lens"}) == {"star_find", "star_name"}
    assert registry.missing("star_find", set()) == ("Sky", "Lens")


def test_equal_content_gives_an_equal_version_in_any_order() -> None:
    other = replace(SKY, name="moon", tools=())
    assert Registry([SKY, other]).version == Registry([other, SKY]).version


@pytest.mark.parametrize(
    "changed",
    [
        replace(SKY, tools=(FIND,)),
        replace(SKY, examples=(("which star is that", ("star_find",)),)),
        replace(SKY, tools=(replace(FIND, risk="high"), NAME)),
    ],
    ids=["tool", "example", "risk"],
)
def test_changed_content_changes_the_version(changed: Category) -> None:
    assert Registry([changed]).version != Registry([SKY]).version


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="star_find"):
        Registry([SKY, replace(SKY, name="moon")])


def test_the_registry_cannot_be_written_to() -> None:
    with pytest.raises(TypeError):
        Registry([SKY]).tools["other"] = FIND  # type: ignore[index]  # the fault under test


def test_an_unknown_name_is_nothing() -> None:
    registry = Registry([SKY])
    assert registry.get("star_eat") is None
    assert registry.category("sea") is None


def test_a_file_becomes_a_category() -> None:
    made = category_of(_module(star_find=FIND, UTTERANCES="[star_find]\nwhich star is that"))
    assert (made.name, made.summary, [one.name for one in made.tools]) == ("star", "stars", ["star_find"])


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"star_find": FIND, "PREFIXES": ("moon_",)},
        {"star_find": FIND, "UTTERANCES": "[star_eat]\neat"},
        {"star_find": FIND, "ROLES": {"orchestrator": ("star", "star_eat")}},
        {"star_find": FIND, "ROLES": {"orchestrator": "star"}},
        {"star_find": FIND, "ADMIN_ROLES": {"admin": ("system",)}},
        {"star_find": FIND, "SAMPLES": {"star_eat": {}}},
    ],
    ids=["no-tool", "prefix", "example", "role", "role-text", "others-tools", "sample"],
)
def test_a_file_that_is_not_whole_is_refused(parts: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        category_of(_module(**parts))


SHIPPED = tools.load()
BUSINESS = [one for one in SHIPPED.tools.values() if not one.free]


@pytest.mark.parametrize("one", BUSINESS, ids=lambda one: one.name)
def test_each_shipped_tool_has_a_dozen_examples(one: Tool) -> None:
    name = one.name
    category = SHIPPED.categories[one.category]
    said = [words for words, wanted in category.examples if name in wanted]
    assert len(said) >= 12
    assert len(set(said)) == len(said)


def test_no_example_stands_twice() -> None:
    said = [words.casefold() for category in SHIPPED.categories.values() for words, _ in category.examples]
    assert sorted(said) == sorted(set(said))


@pytest.mark.parametrize("one", SHIPPED.tools.values(), ids=lambda one: one.name)
def test_forms_get_shorter(one: Tool) -> None:
    full, stub = tokens.count_schema(one.full), tokens.count_schema(one.stub)
    line = tokens.count(one.line)
    assert 180 >= full > stub > line


def test_only_admins_run_commands_and_each_is_asked() -> None:
    shell = SHIPPED.tools["shell_exec"]
    assert (shell.admin, shell.risk, shell.confirm, shell.idempotent) == (True, "high", True, False)


def test_what_reads_the_outside_says_so() -> None:
    untrusted = {one.name for one in SHIPPED.tools.values() if one.reads_untrusted}
    assert {"web_search", "web_read", "http_fetch", "file_read", "file_list", "git_log", "shell_exec"} <= untrusted


def test_no_shipped_utterance_wants_a_tool_that_does_not_exist() -> None:
    registry = load()
    told = [*registry.several, *(each for category in registry.categories.values() for each in category.examples)]
    assert {name for _, wanted in told for name in wanted} - set(registry.tools) == set()


def test_shipped_utterances_without_a_tool_have_a_known_kind() -> None:
    assert {kind for _, kinds in load().none for kind in kinds} <= {"chat", "llm", "open"}
