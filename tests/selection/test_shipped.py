"""The shipped tools: ordinary requests find their tool at the first request, plain talk finds none."""

from dataclasses import replace

import pytest

from cortex.base import tokens
from cortex.bench.ground import LOCAL
from cortex.selection.discover import rank
from cortex.selection.pipeline import plan
from cortex.selection.types import PlanInput, RoleView, Snapshot

ROLE = RoleView(name="admin", tools=("all",))


def names(shipped: Snapshot, message: str) -> list[str]:
    ready = tuple(entry.name for entry in shipped.entries)
    made = plan(PlanInput(snapshot=shipped, ready=ready, role=ROLE, is_admin=True, message=message))
    return [item.name for item in made.sent if not item.name.startswith("tool")]


@pytest.mark.parametrize(
    ("message", "tool"),
    [
        ("add milk and eggs to my shopping list", "task_create"),
        ("what's on my list", "task_list"),
        ("show file notes.md", "file_read"),
        ("run `df -h` in the shell", "shell_exec"),
        ("what did we say about the boiler", "session_search"),
        ("note that the plumber comes at 5", "scratch_append"),
        ("read https://example.com", "web_read"),
        ("whats the weather in Lisbon", "web_search"),
        ("show me the last commits", "git_log"),
        ("show the error logs of cortex", "cortex_logs"),
    ],
)
def test_a_plain_request_finds_its_tool(shipped: Snapshot, message: str, tool: str) -> None:
    assert tool in names(shipped, message)


@pytest.mark.parametrize(
    "message",
    ["hello", "thanks a lot", "write me a poem about autumn", "tell me a joke", "how are you today?"],
)
def test_plain_talk_finds_none(shipped: Snapshot, message: str) -> None:
    assert names(shipped, message) == []


SMALL_TALK = ("I slept so badly last night.", "It is lovely to talk to you.", "How are you doing today, my friend?")


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("request_", "tool"),
    [
        ("Remind me to water the plants at nine.", "reminders_add"),
        ("Turn off the light in the kitchen.", "ha_call_service"),
        ("Add bread to my shopping list.", "task_create"),
    ],
)
def test_a_request_between_sentences_of_talk_finds_its_tool(
    shipped: Snapshot, request_: str, tool: str, place: int
) -> None:
    said = [*SMALL_TALK[:place], request_, *SMALL_TALK[place:]]
    assert tool in names(shipped, " ".join(said))


def test_sentences_of_talk_alone_find_none(shipped: Snapshot) -> None:
    assert names(shipped, " ".join(SMALL_TALK)) == []


def test_several_requests_in_one_message_find_all_their_tools(shipped: Snapshot) -> None:
    said = (
        "add milk to my shopping list, then turn off the kitchen light, email ben that I am late, "
        "remind me at nine to call mum and search the web for a pasta recipe"
    )
    wanted = {"task_create", "ha_call_service", "email_send", "reminders_add", "web_search"}
    assert wanted <= set(names(shipped, said))


def test_a_fact_may_be_looked_up_but_nothing_else(shipped: Snapshot) -> None:
    assert set(names(shipped, "what is the capital of France")) <= {"web_search", "web_read"}


@pytest.mark.parametrize("query", ["你好", "?!", "the and of it"])
def test_a_search_that_says_nothing_finds_none(shipped: Snapshot, query: str) -> None:
    assert rank(query, shipped, [entry.name for entry in shipped.entries], 5) == ()


@pytest.mark.parametrize(
    "message",
    [
        "add milk and eggs to my shopping list",
        "run `df -h` in the shell, show file notes.md and remind me at nine",
        "turn off the kitchen light",
        "what did we say about the boiler",
    ],
)
def test_a_local_model_begins_with_twelve_tools_at_most_and_reaches_the_rest(shipped: Snapshot, message: str) -> None:
    ready = tuple(entry.name for entry in shipped.entries)
    given = PlanInput(snapshot=shipped, ready=ready, role=ROLE, is_admin=True, message=message, fixed_tokens=700)
    made = plan(replace(given, profile=LOCAL))
    sent = [item.name for item in made.sent if not item.name.startswith("tool")]
    cut = {item.name for item in plan(given).sent if not item.name.startswith("tool")}.difference(sent)
    assert not cut or all(item.stage != "form" for item in made.sent), "no neighbour in place of what is wanted"
    assert len(sent) <= 12
    assert made.costs.tools + made.costs.catalog <= 700
    assert "tools_discover" in [item.name for item in made.sent]
    assert set(made.reachable) >= {entry.name for entry in shipped.entries if entry.category != "meta"}
    assert all(decided.reason for decided in made.decisions)


@pytest.mark.parametrize(("window_tokens", "most"), [(4_096, 409), (16_384, 600)])
@pytest.mark.parametrize(
    ("said", "wanted"), [("what did we say about the boiler", "session_search"), ("tell me a joke", "tools_discover")]
)
def test_a_local_model_gets_a_tenth_of_its_window_with_the_catalog(
    shipped: Snapshot, said: str, wanted: str, window_tokens: int, most: int
) -> None:
    ready = tuple(entry.name for entry in shipped.entries)
    given = PlanInput(snapshot=shipped, ready=ready, role=ROLE, is_admin=True, message=said, fixed_tokens=2_100)
    made = plan(replace(given, profile=LOCAL, window_tokens=window_tokens))
    assert made.costs.catalog > 0
    assert made.costs.tools + made.costs.catalog <= most
    assert wanted in [item.name for item in made.sent]


@pytest.mark.parametrize(
    "said",
    [
        "setz bitte Hafermilch auf meine Einkaufsliste und erinnere mich morgen um neun daran, die Katze zu füttern",
        "mets du lait sur ma liste de courses et rappelle-moi demain à neuf heures de nourrir le chat s'il te plaît",
        "añade leche a la lista de la compra y recuérdame mañana a las nueve que tengo que dar de comer al gato",
        "aggiungi il latte alla lista della spesa e ricordami domani alle nove di dare da mangiare al gatto, grazie",
        "zet melk op mijn boodschappenlijst en herinner me er morgen om negen uur aan dat ik de kat moet voeren",
        "põe leite na minha lista de compras e lembra-me amanhã às nove de dar de comer ao gato, por favor",
    ],
    ids=["de", "fr", "es", "it", "nl", "pt"],
)
def test_two_requests_in_another_language_find_both_their_tools(shipped: Snapshot, said: str) -> None:
    assert {"task_create", "reminders_add"} <= set(names(shipped, said))


def test_what_a_late_tool_costs_is_counted_on_the_words_that_are_told(shipped: Snapshot) -> None:
    ready = tuple(entry.name for entry in shipped.entries)
    said = "turn off the kitchen light"
    given = PlanInput(snapshot=shipped, ready=ready, role=ROLE, is_admin=True, message=said, fixed_tokens=4_000)
    first = plan(replace(given, profile=LOCAL, turn="t1"))
    later = replace(given, profile=LOCAL, message="remind me at nine to call mum", turn="t2", memory=first.memory)
    second = plan(later)
    assert second.late == "bridge"
    assert second.noted
    assert second.costs.notes == pytest.approx(tokens.count(second.notes), abs=1 + len(second.noted))
