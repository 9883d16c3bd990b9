import json
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from tests.bench.conftest import Write, row
from tests.bench.files import Data, read

CATALOG = [{"name": "mow", "description": "Mow the lawn"}, {"name": "sow", "description": "Sow seeds", "group": "beds"}]
QUERIES = [{"id": "q1", "query": "cut the grass", "gold": ["mow"]}]
told: list[str] = []


def found(path: Path) -> Data:
    told.clear()
    return read(path, told.append)


def test_a_file_is_known_by_its_rows_whatever_its_name(tmp_path: Path, write: Write) -> None:
    write("a.jsonl", [row("turn on the lamp", "tool", ["lamp_set"])])
    write("b.jsonl", CATALOG)
    write("c.jsonl", QUERIES)
    (tmp_path / "d.json").write_text(json.dumps({"mow": ["the grass is high"], "sow": []}), encoding="utf-8")
    data = found(tmp_path)
    assert [one.name for one in data.routing] == ["a"]
    assert [(one.name, len(one.tools), dict(one.examples)) for one in data.retrieval] == [
        ("c", 2, {"mow": ("the grass is high",), "sow": ()})
    ]
    assert told == []


def test_queries_and_catalogue_pair_by_name(tmp_path: Path, write: Write) -> None:
    write("retrieval_one_catalog.jsonl", [*CATALOG, {"name": "rake", "description": "Rake"}])
    write("retrieval_two_catalog.jsonl", CATALOG)
    write("retrieval_two_queries.jsonl", QUERIES)
    data = found(tmp_path)
    assert [(one.name, len(one.tools)) for one in data.retrieval] == [("two", 2)]
    assert [tool.name for tool in data.filler] == ["mow", "sow", "rake"]


def test_a_queries_file_given_alone_finds_what_lies_beside_it(write: Write) -> None:
    write("retrieval_two_catalog.jsonl", CATALOG)
    data = found(write("retrieval_two_queries.jsonl", QUERIES))
    assert [len(one.tools) for one in data.retrieval] == [2]


def test_a_file_with_a_list_of_rows_is_read_like_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([row("hello", "chat")]), encoding="utf-8")
    assert found(path).routing[0].rows[0].text == "hello"


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults(write: Write) -> None:
    path = write("x.jsonl", [{"text": "hello", "kind": "chat", "need_tools": None, "id": 7, "colour": "red"}])
    only = found(path).routing[0].rows[0]
    assert (only.id, only.need_tools, only.history) == ("7", (), ())


@pytest.mark.parametrize(
    "history",
    [
        [{"user": "hi"}, {"assistant": "hello"}],
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
        ["hi", {"assistant": "hello"}],
    ],
    ids=["by speaker", "by role", "bare"],
)
def test_a_history_comes_in_several_shapes(history: list[object], write: Write) -> None:
    path = write("x.jsonl", [row("and now?", "chat", conversation="c", turn=1, history=history)])
    assert found(path).routing[0].rows[0].history == (("user", "hi"), ("assistant", "hello"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{oops", "rows.jsonl, line 2: not JSON"),
        ('{"text": "hello"}', "rows.jsonl, line 2: kind: is needed"),
        ('{"text": "hello", "kind": "gossip"}', "rows.jsonl, line 2: kind: must be"),
        ('{"text": "x", "kind": "tool", "need_tools": [[3]]}', "rows.jsonl, line 2: need_tools.0.0: "),
        ('{"text": "x", "kind": "chat", "history": [{"robot": "hm"}]}', "rows.jsonl, line 2: history: "),
        ('["no", "object"]', "rows.jsonl, line 2: "),
    ],
    ids=["no json", "key missing", "unknown kind", "wrong need", "wrong history", "no object"],
)
def test_a_broken_line_is_told_with_file_and_line(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(row('hello', 'chat'))}\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        found(path)
    assert words in caught.value.message


def test_a_file_of_another_kind_is_passed_over_in_a_folder_with_a_word(tmp_path: Path, write: Write) -> None:
    write("rows.jsonl", [row("hello", "chat")])
    write("prices.jsonl", [{"euros": 3}])
    assert len(found(tmp_path).routing) == 1
    assert told == ["prices.jsonl: not of the bench's format, passed over"]


def test_where_there_is_nothing_to_judge_it_says_so(tmp_path: Path, write: Write) -> None:
    with pytest.raises(UserError, match="does not exist"):
        found(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no rows"):
        found(tmp_path)
    with pytest.raises(UserError, match="no rows"):
        found(write("prices.jsonl", [{"euros": 3}]))


def test_queries_without_a_catalogue_are_told(tmp_path: Path, write: Write) -> None:
    write("rows.jsonl", [row("hello", "chat")])
    write("lost_queries.jsonl", QUERIES)
    assert found(tmp_path).retrieval == ()
    assert told == ["lost_queries.jsonl: no catalogue has its tools, passed over"]


def test_a_name_that_stands_twice_in_a_catalogue_counts_once(write: Write) -> None:
    data = found(write("more_catalog.jsonl", [*CATALOG, CATALOG[0]]))
    assert len(data.filler) == 2
    assert told == ["more_catalog.jsonl: 1 names stand there twice, the first counts"]
