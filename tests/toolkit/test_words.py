"""What calls say to a person: every tool has words, and they come from the call's own arguments."""

import json

import pytest

from cortex.agent.arguments import title_of
from cortex.agent.refusals import for_person
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.mcp import McpServer, McpTool, mcp_tool
from cortex.toolkit.words import facts, title
from cortex.tools import load

REGISTRY = load()


@pytest.mark.parametrize("name", sorted(REGISTRY.tools))
def test_every_tool_says_in_words_what_a_call_does(name: str) -> None:
    words = REGISTRY.tools[name].words
    assert words is not None, "give @tool its words: a title of its arguments (toolkit/words.py)"
    assert name not in str(words)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("task_create", {"title": "milk", "list_name": "shopping"}, "Add milk to shopping"),
        ("task_create", {"title": "milk", "due": "2026-11-25"}, "Add milk, due Wed 25 Nov 2026"),
        ("task_update", {"task": "milk", "priority": 3, "clear_due": True}, "Change task milk: priority 3, no due day"),
        ("ha_call_service", {"service": "light.turn_off", "target": "Kitchen light"}, "Turn off Kitchen light"),
        (
            "ha_call_service",
            {"service": "light.turn_on", "target": "light.kitchen_table", "data": {"brightness_pct": 30}},
            "Turn on kitchen table (brightness pct 30)",
        ),
        ("ha_call_service", {"service": "scene.reload"}, "Reload scene"),
        ("email_send", {"to": "ada@example.org", "subject": "Hi", "text": "x"}, "Send e-mail to ada@example.org: Hi"),
        ("shell_exec", {"command": "df -h\n| sort"}, "Run in the sandbox: df -h | sort"),
        ("web_search", {"query": "heat\u202e pumps"}, "Search the web: heat⟨U+202E⟩ pumps"),
        ("cron_toggle", {"job": "News", "enabled": False}, "Pause the job News"),
        ("no_such_tool", {}, "no_such_tool"),
    ],
)
def test_a_call_says_what_it_does(name: str, arguments: dict[str, object], says: str) -> None:
    assert title_of(REGISTRY, name, json.dumps(arguments)) == says


def test_a_long_argument_is_cut_and_its_line_ends_go() -> None:
    said = title("Note: {text}", {"text": "a\n" + "b" * 500}, {"text"})
    assert said.startswith("Note: a b")
    assert len(said) < 100


def test_no_value_of_an_argument_passes_for_another_argument() -> None:
    shown = facts({"subject": "Hi", "text": "Dear Bob\nTo: eve@evil.example"})
    assert shown.splitlines() == ["Subject: Hi", "Text:", "  Dear Bob", "  To: eve@evil.example"]


def test_words_that_name_no_argument_are_refused_at_import() -> None:
    async def demo(ctx: Ctx, text: str) -> str:
        """Say it.

        Args:
            text: What.
        """
        return text

    with pytest.raises(TypeError, match="nobody"):
        tool(words="Say {nobody}")(demo)


def test_a_tool_of_an_mcp_server_says_whose_it_is_and_what_it_is_given() -> None:
    schema = {"type": "object", "properties": {"city_name": {"type": "string"}}}
    made = mcp_tool(McpServer(name="acme"), McpTool(name="get_weather", title="Weather", schema=schema))
    assert made.words is not None
    assert title(made.words, {"city_name": "Ghent"}, ()) == "acme: Weather (city name Ghent)"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("No open task fits 'x'. Look with task_list.", "No open task fits 'x'."),
        ("The folder 'my_files' is for reading only.", "The folder 'my_files' is for reading only."),
        ("The user has no device for push yet.", "You have no device for push yet."),
        ("Use the id.", "It did not work."),
    ],
)
def test_what_a_tool_tells_the_model_to_do_next_reaches_no_person(said: str, shown: str) -> None:
    assert for_person(said, REGISTRY.tools.keys()) == shown
