"""Tools that can do harm, counted where nobody asked for them."""

from pathlib import Path

from cortex.tools import load
from tests.bench import risk, selection
from tests.bench.files import CASES, read
from tests.bench.ground import ground
from tests.bench.rows import Kind, Utterance
from tests.bench.scores import ScoredRow


def judged(kind: Kind, *sent: str, wanted: tuple[str, ...] = (), is_beyond: bool = False) -> ScoredRow:
    needs = (wanted,) if wanted else ()
    return ScoredRow(
        row=Utterance(text="so it goes", kind=kind, need_tools=needs),
        needs=needs,
        categories=frozenset(),
        names=frozenset(sent),
        has_nonweb=is_beyond,
        tokens=0,
        ms=0.0,
    )


def test_a_risky_tool_counts_only_where_no_group_names_it() -> None:
    rows = [
        judged("tool", "ha_get_state", "shell_exec", wanted=("ha_get_state",)),
        judged("tool", "task_list", wanted=("task_list",)),
        judged("tool", "shell_exec", "reminders_clear", wanted=("file_grep", "shell_exec")),
        judged("llm", "email_send", "web_search"),
        judged("chat", "agent_cancel", "reminders_clear"),
    ]
    found = risk.shares(rows)
    assert found.rows == 5
    assert found.tools["shell_exec"] == 0.25  # the third row asked for it
    assert found.tools["reminders_clear"] == 0.4
    assert list(found.tools) == ["reminders_clear", "shell_exec", "agent_cancel", "email_send"]
    assert found.risks == {"ends": 0.4, "sends": 0.2, "runs": 0.25, "spends": 0.0}
    assert found.any == 0.75  # of the four that ask for none, all but the second


def test_where_every_row_asks_there_is_no_share() -> None:
    found = risk.shares([judged("tool", "shell_exec", wanted=("shell_exec",))])
    assert found.tools == {}
    assert found.any is None
    assert "runs" not in found.risks
    assert found.risks["ends"] == 0.0
    assert risk.shares([]) == risk.RiskShares(rows=0, tools={}, risks={}, any=None)


def test_every_tool_that_is_asked_about_first_is_one_of_them_and_all_of_them_are_there() -> None:
    tools = load().tools
    assert tools.keys() >= risk.RISKY
    assert {name for name, tool in tools.items() if tool.risk == "high" or tool.confirm} <= risk.RISKY
    assert {name for name, tool in tools.items() if tool.sends_out and tool.effect == "write"} <= risk.RISKS["sends"]
    ends = ("_remove", "_clear", "_forget", "_cancel", "_disable", "_delete")
    assert {name for name in tools if name.endswith(ends)} == risk.RISKS["ends"]


def test_the_rows_that_the_risk_is_counted_on_ask_for_nothing_risky() -> None:
    rows = next(one.rows for one in read(CASES, lambda _: None).routing if one.name == "risk")
    needs = [row for row in rows if row.kind == "tool"]
    assert (len(needs), sum(row.kind == "llm" for row in rows)) == (150, 60)
    assert {name for row in needs for group in row.need_tools for name in group}.isdisjoint(risk.RISKY)


def test_the_bench_tells_it_with_each_set_and_recipe(tmp_path: Path) -> None:
    rows = tmp_path / "routing_two.jsonl"
    rows.write_text('{"text": "hello there", "kind": "chat"}\n{"text": "why is the sky blue", "kind": "llm"}\n')
    found = selection.measured((rows,), ("all", "cortex"), ground(), 1, lambda _: None)[0]["risk"]
    assert found["all"]["risks"] == {"ends": 1.0, "sends": 1.0, "runs": 1.0, "spends": 1.0}
    assert found["all"]["tools"].keys() == risk.RISKY
    assert found["cortex"]["rows"] == 2
