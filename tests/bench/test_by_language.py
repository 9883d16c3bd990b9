"""What a language gets is counted over all of its sets; harm that nobody asked for stands beside its goal."""

from typing import Any

from tests.bench import by_language, goals, table

KINDS = {"tool": 100, "chat": 25, "llm": 25}


def told(name: str, kinds: dict[str, int], **figures: float) -> dict[str, Any]:
    home = figures.pop("home", None)
    found = {"name": name, "kind": "routing", "rows": sum(kinds.values()), "source": "languages", "kinds": kinds}
    homes = {"cortex": {"ha": {"rows": 10, "recall": home}}} if home is not None else {}
    return {**found, "recipes": {"cortex": figures}, "categories": homes}


SETS = [
    told("en", KINDS, recall=1.0, recall_after_discover=1.0, chat_any=0.0, llm_nonweb=0.0, home=1.0),
    told("de", KINDS, recall=0.9, recall_after_discover=0.99, chat_any=0.4, llm_nonweb=0.2, home=0.8),
    told("daily_de", {"tool": 300, "chat": 75}, recall=1.0, recall_after_discover=0.97, chat_any=0.2, home=1.0),
    {**told("house", KINDS, recall=0.1), "source": "ours"},
]


def test_the_sets_of_a_language_count_by_their_rows() -> None:
    _, german, english, aims = by_language.rows(SETS, ("cortex",))
    assert german == ["de", "cortex", "0.975", "0.975*", "0.900", "0.250*", "0.200"]
    assert english == ["en", "cortex", "1.000", "1.000", "1.000", "0.000", "0.000"]
    assert aims == ["goal", "", "", "≥0.985", "", "≤0.2", "≤0.45"]


def test_a_way_that_lacks_a_figure_has_a_dash_and_none_is_marked_but_ours() -> None:
    sets = [{**one, "recipes": {**one["recipes"], "tf-idf": {"chat_any": 0.9}}} for one in SETS]
    rows = {tuple(row[:2]): row[2:] for row in by_language.rows(sets, ("cortex", "tf-idf"))}
    assert rows["en", "tf-idf"] == ["-", "-", "-", "0.900", "-"]


def test_recall_is_told_as_a_share_of_the_english() -> None:
    assert by_language.of_english(SETS, "cortex") == {"de": 0.975}
    assert by_language.of_english(SETS[1:], "cortex") == {}


def test_without_languages_there_is_no_table() -> None:
    assert by_language.rows(SETS[3:], ("cortex",)) == []
    assert "by language" not in table.selection(SETS[3:])
    last = table.selection(SETS).rpartition("\n\n")[2].splitlines()
    assert last[0] == "by language"
    assert last[1].split()[:3] == ["language", "way", "requests"]


def test_harm_that_nobody_asked_for_is_told_by_tool_and_by_kind() -> None:
    found = {"rows": 9, "tools": {"shell_exec": 0.2}, "risks": {"runs": 0.2, "ends": 0.0}, "any": 0.25}
    none = {"rows": 9, "tools": {}, "risks": {"runs": 0.0, "ends": None}, "any": 0.0}
    one = {**SETS[3], "name": "risk", "risk": {"cortex": found, "all": none}}
    assert table.risky([one]) == [
        ["set", "way", "shell_exec", "any", "runs", "ends"],
        ["risk", "cortex", "0.200*", "0.250", "0.200", "0.000"],
        ["risk", "all", "0.000", "0.000", "0.000", "-"],
        ["goal", "", goals.RISK["shell_exec"].shown, "", "", ""],
    ]
    assert len(table.risky([one], ("cortex",))) == 3
    assert table.risky([{**one, "name": "house"}]) == table.risky(SETS) == []
