import pytest
from msgspec.structs import replace

from cortex.selection.pipeline import plan
from cortex.selection.types import PastTurn, RoleView, Trigger
from cortex.selection.ways import punch
from tests.selection.baseline_house import TOOLS, WORLD, sent, talk, why, wish

CORE = list(punch.CORE)


def grown(message: str, *past: PastTurn) -> set[str]:
    return set(plan(wish("punch", message, past=past)).memory.grown)


def test_the_core_is_eighteen_tools_and_there_are_nineteen_groups() -> None:
    assert len(CORE) == 18
    assert set(CORE) <= set(TOOLS)
    assert len(punch.GROUPS) == 19
    assert set(punch.GROUPS) <= {each.category for each in WORLD.entries} | {"skills"}


@pytest.mark.parametrize(
    "message", ["hello", "look at this image", "push the button", "the process of making hash browns"]
)
def test_plain_words_bring_the_core_alone(message: str) -> None:
    made = plan(wish("punch", message))
    assert sent(made) == CORE
    assert made.costs.tools <= 0.30 * made.costs.permitted


@pytest.mark.parametrize(
    ("message", "group"),
    [
        ("git push it", "git"),
        ("is that a dockerfile", "system"),
        ("make it a YAML file", "file"),
        ("every day at nine", "cron"),
        ("click button three", "web_post"),
        ("delegate to somebody", "agents"),
        ("unzip the thing", "system"),
        ("render template for me", "file"),
        ("the sha256 of it", "system"),
        ("find references to it", "file"),
        ("kill process 12", "system"),
        ("call the REST API", "web_post"),
        ("what is in the knowledge graph", "aether"),
        ("a plugin for that", "coding"),
        ("ocr of the page", "notifications"),
        ("wake me at seven", "reminders"),
        ("remember that I am vegan", "memory"),
    ],
)
def test_phrases_activate_their_group(message: str, group: str) -> None:
    made = plan(wish("punch", message))
    assert made.memory.grown == (group,)
    extra = [each.name for each in WORLD.entries if each.category == group and each.name not in CORE]
    assert sent(made) == CORE + extra


def test_a_group_of_the_table_also_goes_by_the_longer_phrases_that_were_added_to_its_category() -> None:
    git = next(each for each in WORLD.domains if each.name == "git")
    said = (*git.triggers, Trigger(text="ship the branch"), Trigger(text="shipping"))
    house = replace(
        WORLD,
        version="said",
        domains=tuple(replace(git, triggers=said) if each is git else each for each in WORLD.domains),
    )
    made = [plan(wish("punch", message, snapshot=house)) for message in ("git log", "ship the branch", "shipping")]
    assert [each.memory.grown for each in made] == [("git",), ("git",), ()]


def test_a_phrase_is_not_found_inside_words() -> None:
    assert grown("a digit legit, the recursion is csvlike") == set()


def test_a_grown_group_stays_after_an_unrelated_message_and_later_ones_come_behind_it() -> None:
    plans = talk("punch", ["kill process 4", "and now git log", "hello", "thanks", "bye", "how are you"])
    assert plans[-1].memory.grown == ("system", "git")
    assert sent(plans[-1]) == sent(plans[1])
    assert sent(plans[1])[: len(sent(plans[0]))] == sent(plans[0])
    assert plans[1].added == ("git_status", "git_log", "git_diff")
    assert [made.epoch_number for made in plans] == [1, 2, 2, 2, 2, 2]


def test_growth_outlasts_a_message_without_tools() -> None:
    first = plan(wish("punch", "git log"))
    quick = plan(wish("punch", "unzip it", memory=first.memory, mode="chat", turn="t2"))
    after = plan(wish("punch", "hello", memory=quick.memory, turn="t3"))
    assert quick.sent == ()
    assert sent(after) == sent(first)


OTHER = PastTurn(user="hm", assistant="hm.")


@pytest.mark.parametrize(
    "turn",
    [
        PastTurn(user="hm", assistant="Shall I do a git pull?"),
        PastTurn(user="hm", called=("git_log",)),
        PastTurn(user="hm", called=("shell_exec",), arguments=("git rebase main",)),
        PastTurn(user="hm", called=("shell_exec",), results=("it is a git clone of that",)),
    ],
    ids=["text", "called tool", "string argument", "result"],
)
def test_tool_context_is_seen(turn: PastTurn) -> None:
    assert "git" in grown("go on", turn)


def test_tools_of_this_turn_are_context() -> None:
    assert set(plan(wish("punch", "go on", round=2, found=("git_log",))).memory.grown) == {"git"}


def test_only_the_last_four_messages_are_scanned() -> None:
    early = PastTurn(user="git log", assistant="Done.")
    assert grown("go on", early) == {"git"}
    assert grown("go on", early, OTHER) == set()
    assert grown("go on", PastTurn(user="hm", assistant="a git pull"), OTHER) == {"git"}


def test_arguments_and_results_count_with_their_first_200_characters() -> None:
    padded = "x" * 190
    near = PastTurn(user="hm", called=("shell_exec",), results=(f"{padded} git log",))
    far = PastTurn(
        user="hm", called=("shell_exec",), results=(f"{padded}xxxxxxxx git log",), arguments=("y" * 200 + " git",)
    )
    assert "git" in grown("go on", near)
    assert "git" not in grown("go on", far)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("a" * 199 + "é" + "b", "a" * 199 + "é"),
        ("a" * 199 + "e\u0301b", "a" * 199),
        ("a" * 198 + "👩\u200d🔧b", "a" * 198),
        ("a" * 199 + "👍🏽b", "a" * 199),
        ("a" * 199 + "🇵🇹b", "a" * 199),
        ("a" * 200, "a" * 200),
        ("\u0301" * 300, ""),
        ("", ""),
    ],
    ids=["whole", "accent", "joined", "toned", "flag", "exact", "accents only", "empty"],
)
def test_a_cut_never_falls_inside_a_character(words: str, kept: str) -> None:
    assert punch.cut(words) == kept


def test_a_restricted_role_has_what_it_was_granted_at_once() -> None:
    role = RoleView(name="house", tools=("ha", "tasks"))
    made = plan(wish("punch", "hello", role=role))
    assert sent(made) == ["task_list", "task_create", "ha_get_state", "ha_get_states", "ha_call_service"]
    assert "granted" in why(made, "ha_get_state")
    assert "not active" in why(made, "task_update")


def test_permission_is_for_each_tool_of_a_group() -> None:
    role = RoleView(name="house", tools=("git_log", "tasks", "system"))
    made = plan(wish("punch", "git diff, and kill process 3", role=role, is_admin=False))
    assert [name for name in sent(made) if name.startswith("git")] == ["git_log"]
    assert "shell_exec" not in sent(made)
    assert "cortex_logs" in sent(made)


def test_words_from_outside_bring_in_permitted_tools_only() -> None:
    loud = PastTurn(user="read it", called=("web_read",), results=("git log; home assistant; `shell_exec`; sql query",))
    role = RoleView(name="house", tools=("web", "git", "tasks"))
    made = plan(wish("punch", "go on", role=role, past=(loud,)))
    assert {decided.category for decided in made.decisions} == {"web", "git", "tasks"}
    assert set(made.reachable) == {each.name for each in WORLD.entries if each.category in ("web", "git", "tasks")}


@pytest.mark.parametrize("channel", ["chat", "cron"])
def test_a_fixed_list_of_tools_bypasses_selection(channel: str) -> None:
    role = RoleView(name="job", tools=("git_log", "ha_get_state"))
    made = plan(wish("punch", "hello", role=role, channel=channel))
    assert sent(made) == ["git_log", "ha_get_state"]
    assert "fixed list" in why(made, "git_log")


def test_the_hash_tells_a_changed_schema_and_nothing_else() -> None:
    first = plan(wish("punch", "hello"))
    same = plan(wish("punch", "good evening", turn="t2"))
    grew = plan(wish("punch", "git log"))
    changed = tuple(
        replace(each, full=replace(each.full, description="other")) if each.name == "file_read" else each
        for each in WORLD.entries
    )
    other = plan(wish("punch", "hello", snapshot=replace(WORLD, version="world-3", entries=changed)))
    assert dict(first.labels)["hash"] == dict(same.labels)["hash"]
    assert len({dict(made.labels)["hash"] for made in (first, grew, other)}) == 3


def test_the_hash_is_fnv_1a() -> None:
    assert punch.fingerprint([]) == "cbf29ce484222325"


def test_a_category_of_somebody_elses_is_a_group_by_its_own_phrases() -> None:
    foreign = replace(WORLD.entries[0], name="garden_water", category="garden")
    domain = replace(WORLD.domains[0], name="garden")
    house = replace(WORLD, version="garden", entries=(*WORLD.entries, foreign), domains=(*WORLD.domains, domain))
    names = tuple(each.name for each in house.entries)
    used = PastTurn(user="hm", called=("garden_water",))
    made = plan(wish("punch", "go on", snapshot=house, ready=names, past=(used,)))
    assert "garden_water" in sent(made)
