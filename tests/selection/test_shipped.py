"""The shipped tools: ordinary requests find their tool at the first request, plain talk finds none."""

import pytest
from msgspec.structs import replace

from cortex.base import tokens
from cortex.selection.discover import rank
from cortex.selection.pipeline import plan
from cortex.selection.types import PlanInput, RoleView, Snapshot
from tests.bench.ground import LOCAL

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


UNREAD = (
    "明天提醒我买牛奶",
    "أطفئ الضوء",
    "מה השעה",
    "напомни мне завтра купить молоко",
    "ช่วยปิดไฟ",
    "電気を消して",
    "불 꺼줘",
    "बत्ती बंद करो",
    "Θύμισέ μου αύριο",
    "sammuta keittiön valot",
    "przypomnij mi jutro kupić mleko",
    "kapcsold le a villanyt",
    "💡",
    "🔦🏠?",
    "ok 明天提醒我买牛奶",
)


def test_a_part_that_cannot_be_read_keeps_nothing_from_the_rest(shipped: Snapshot) -> None:
    ready = tuple(entry.name for entry in shipped.entries)
    wish = "please send an e-mail to ada@example.org that dinner is at eight tonight and that we are looking forward."
    message = f"{wish}\nSzczęśliwej drogi"
    made = plan(PlanInput(snapshot=shipped, ready=ready, role=ROLE, is_admin=True, message=message))
    assert "email_send" in {item.name for item in made.sent}


@pytest.mark.parametrize("message", UNREAD)
@pytest.mark.parametrize("before", ["", "hello"], ids=["first", "after a greeting"])
def test_what_cannot_be_read_opens_the_way_to_tools_and_brings_none(
    shipped: Snapshot, message: str, before: str
) -> None:
    ready = tuple(entry.name for entry in shipped.entries)
    given = PlanInput(snapshot=shipped, ready=ready, role=ROLE, is_admin=True, message=before, profile=LOCAL)
    given = replace(given, fixed_tokens=2_000)
    memory = plan(given).memory
    assert memory.sent == ()
    made = plan(replace(given, message=message, memory=memory, turn="t2"))
    assert {item.name for item in made.sent} == {"tools_discover", "tool_call"}


@pytest.mark.parametrize("message", ["", "?!", "...", "———", "👍🏽", "❤️", "😊", "hola", "ok 👍", "привет", "谢谢"])
def test_a_sign_or_a_word_of_small_talk_opens_nothing(shipped: Snapshot, message: str) -> None:
    ready = tuple(entry.name for entry in shipped.entries)
    assert plan(PlanInput(snapshot=shipped, ready=ready, role=ROLE, is_admin=True, message=message)).sent == ()


@pytest.mark.parametrize(
    ("message", "tool"),
    [("打开 kitchen light", "ha_call_service"), ("git статус", "git_status"), ("💡 off", "ha_call_service")],
)
def test_the_words_that_are_known_among_others_count(shipped: Snapshot, message: str, tool: str) -> None:
    assert tool in names(shipped, message)


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


@pytest.mark.parametrize(
    "message",
    [
        "fix the typos: I wil delet the file tomorow and sned it to you",
        "translate into French: turn off the lights and remind me at eight",
        "übersetze: schalte das Licht im Flur aus",
        "corrige : je vais suprimer le fichier",
        "traduce: apaga las luces del salón",
        "riscrivi: ti mando il file domani",
        "vertaal naar het Engels: doe het licht uit",
        "traduz: apaga as luzes da sala",
    ],
)
def test_what_a_text_to_be_worked_on_says_is_no_wish(shipped: Snapshot, message: str) -> None:
    carried = set(names(shipped, message))
    assert carried.isdisjoint({"email_send", "ha_call_service", "reminders_add", "reminders_remove", "shell_exec"})


@pytest.mark.parametrize(
    ("message", "tool"),
    [
        ("quick question: is the light in the kitchen on?", "ha_get_state"),
        ("remind me: call the dentist tomorrow", "reminders_add"),
        ("one more thing: turn off the light in the hall", "ha_call_service"),
        ("translate this and email it to Ada: see you tomorrow", "email_send"),
        ("fix the typos: teh cat sat\n\nand save it as a note", "notes_append"),
    ],
)
def test_a_wish_behind_or_before_a_colon_stays_one(shipped: Snapshot, message: str, tool: str) -> None:
    assert tool in names(shipped, message)


@pytest.mark.parametrize(
    ("message", "tool", "harm"),
    [
        ("remind me to call grandma tomorrow at 6", "reminders_add", "reminders_remove"),
        ("rappelle-moi le pain demain à 9h", "reminders_add", "reminders_remove"),
        ("what do you know about me", "memory_search", "memory_forget"),
        ("donne-moi la météo", "web_search", "cron_add"),
        ("who wrote this file?", "git_log", "shell_exec"),
    ],
)
def test_a_tool_that_does_harm_is_no_second_thought(shipped: Snapshot, message: str, tool: str, harm: str) -> None:
    carried = names(shipped, message)
    assert (tool in carried, harm in carried) == (True, False)


@pytest.mark.parametrize(
    ("message", "tool"),
    [
        ("cancel the reminder for the dentist", "reminders_remove"),
        ("forget what I told you about my job", "memory_forget"),
        ("turn on the light in the hall, then email Ada that I am home and clear all my reminders", "reminders_clear"),
        ("turn on the light in the hall, then email Ada that I am home and clear all my reminders", "email_send"),
    ],
)
def test_a_tool_that_does_harm_comes_where_a_part_of_the_message_wants_it(
    shipped: Snapshot, message: str, tool: str
) -> None:
    assert tool in names(shipped, message)
