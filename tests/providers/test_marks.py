"""What is said and what is thought, told apart by the marks in a streamed text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.providers.marks import Piece, ReasoningMarks

HARMONY = "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>{said}<|return|>"
CALL = '<|channel|>commentary to=functions.task_create <|constrain|>json<|message|>{"title":"milk"}<|call|>'


def read(pieces: list[str], *, needs_words: bool = True) -> tuple[str, str]:
    """What a reader has in the end: (thinking, text)."""
    marks = ReasoningMarks()
    given: list[Piece] = []
    for piece in pieces:
        given += marks.feed(piece)
    given += marks.end(needs_words=needs_words)
    kinds = [kind for kind, _ in given]
    kept = given[len(kinds) - kinds[::-1].index("void") :] if "void" in kinds else given
    assert all(text for kind, text in kept)
    return "".join(t for kind, t in kept if kind == "thinking"), "".join(t for kind, t in kept if kind == "text")


def in_every_cut(text: str, *, needs_words: bool = True) -> tuple[str, str]:
    """The same in one piece, letter by letter, and in two pieces at every place."""
    whole = read([text], needs_words=needs_words)
    assert read(list(text), needs_words=needs_words) == whole
    for at in range(1, len(text)):
        assert read([text[:at], text[at:]], needs_words=needs_words) == whole, text[:at]
    return whole


@pytest.mark.parametrize(
    "text",
    [
        "<think>{thought}</think>{said}",
        "<think>\n{thought}\n</think>\n\n{said}",
        "\n\n  <think>\n\n{thought}\n\n</think>{said}",
        "<THINK>{thought}</Think>\n{said}",
        "<thinking>\n{thought}</thinking>\n\n{said}",
        "<thought>{thought}</thought>\n{said}",
        "<reasoning>\n{thought}\n</reasoning>\n{said}",
        "<reason>{thought}</reason>{said}",
        "<seed:think>{thought}</seed:think>{said}",
        "<longcat_think>\n{thought}\n</longcat_think>\n{said}",
        "[THINK]{thought}[/THINK]{said}",
        "◁think▷{thought}◁/think▷{said}",
        "<|begin_of_thought|>\n\n{thought}\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\n{said}\n\n<|end_of_solution|>",
        "<|START_THINKING|>{thought}<|END_THINKING|><|START_RESPONSE|>{said}<|END_RESPONSE|>",
        "<|inner_prefix|>{thought}<|inner_suffix|>{said}",
        "<|channel>thought\n{thought}\n<channel|>{said}",
        "<unused94>thought\n{thought}<unused95>{said}",
        "Here is my thought process:\n{thought}\nHere is my response:\n{said}",
        "<think>\n{thought}\n</think>\n<answer>\n{said}\n</answer>",
        "<think>{thought}</think>\n<response>{said}</response>\n",
        "<think>\n\n</think>\n\n<think>\n{thought}\n</think>\n\n{said}",
        "{thought}\n</think>\n\n{said}",
        "{thought}</think>{said}",
        "{thought}[/THINK]{said}",
        "{thought}◁/think▷{said}",
        "{thought}\n</seed:think>\n{said}",
        HARMONY,
        "<|start|>assistant" + HARMONY,
        HARMONY.replace("<|return|>", ""),
        HARMONY.replace("<|end|>", ""),
        "analysis{thought}assistantfinal{said}",
    ],
)
def test_what_is_thought_is_no_answer(text: str) -> None:
    thought, said = "The user says hi.\nI should <b>greet</b> 2 < 3.", "Hello! **You** are [welcome] <here>."
    assert in_every_cut(text.format(thought=thought, said=said)) == (thought, said)


@pytest.mark.parametrize("begin", ["<think></think>", "<think>\n\n</think>\n\n", "</think>\n\n", "[THINK][/THINK]"])
def test_reasoning_without_words_leaves_the_answer(begin: str) -> None:
    assert in_every_cut(f"{begin}Hello there.") == ("", "Hello there.")


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  \n Hello.  \n",
        "",
        "   ",
        "<",
        "<thi",
        "The `<think>` tag begins reasoning and `</think>` ends it.",
        "The <think> tag begins reasoning, and </think> ends it.",
        "`<think>` is a tag. It ends with `</think>`.",
        "<think> is a tag that models use, and </think> is its end. They stand at the beginning.",
        "<think> and </think> are tags.",
        "<think>...</think> is how reasoning is written.",
        "<think></think> tags hold reasoning.",
        "<think> is a tag that models use. It is often hidden.",
        "</think> is the tag that ends it.",
        "Write:\n\n```\n<think>\nreasoning\n</think>\nanswer\n```\n\nThat is all.",
        "Write:\n\n<think>\nreasoning\n</think>\nanswer",
        "It ends with:\n\n    </think>\n\nThat is all.",
        'The mark "</think>" ends it.',
        "> </think>\n\nis what you wrote.",
        "```html\n</think>\n```\nis no HTML.",
        "Use `[THINK]` and `[/THINK]` for Magistral, `<|channel|>` for gpt-oss.",
        "[THINKING] about it: yes.",
        "<thinker>me</thinker>",
        "analysis of the data shows a rise.",
        "analysisResult = compute()",
        "Here is my thought process: I look at the sum, then I add.",
        "<|channel is no mark",
        "<|start|>",
        "The answer is <b>4</b>. <think>no</think> Done.",
        "<answer>4</answer>",
        "◁ is a triangle",
    ],
)
@pytest.mark.parametrize("needs_words", [True, False])
def test_what_speaks_of_marks_is_shown_as_it_is(text: str, *, needs_words: bool) -> None:
    thinks = not needs_words and text.startswith("<think> is a tag that models use. ")  # cut before it could end
    expected = (text.removeprefix("<think> "), "") if thinks else ("", text)
    assert in_every_cut(text, needs_words=needs_words) == expected


def test_reasoning_that_names_its_own_end_goes_on() -> None:
    thought = "The user asks about tags.\nI say that `</think>` ends it, and </think> too.\nGood."
    assert in_every_cut(f"<think>\n{thought}\n</think>\n\nIt ends reasoning.") == (thought, "It ends reasoning.")


def test_an_answer_about_the_mark_behind_reasoning_is_shown() -> None:
    text = "<think>\nThey ask about it.\n</think>\n\n<think> is a tag; </think> ends it."
    assert in_every_cut(text) == ("They ask about it.", "<think> is a tag; </think> ends it.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>\nHello! How can I help?", "Hello! How can I help?"),
        ("<think>Hello!", "Hello!"),
        ("[THINK]Hello!", "Hello!"),
        ("<|channel|>analysis<|message|>Hello!", "Hello!"),
        ("Hello!\n</think>", "Hello!"),
        ("Hello!</think>\n\n", "Hello!"),
    ],
)
def test_reasoning_that_never_ends_is_the_answer_where_there_is_no_other(text: str, said: str) -> None:
    assert in_every_cut(text) == ("", said)
    assert in_every_cut(text, needs_words=False) == (said, "")


def test_reasoning_that_ended_and_said_nothing_is_no_answer() -> None:
    assert in_every_cut("<think>\nHm.\n</think>\n\n") == ("Hm.", "")


def test_a_call_of_harmony_stays_whole_for_who_reads_calls() -> None:
    assert in_every_cut(f"<|channel|>analysis<|message|>Add it.<|end|><|start|>assistant{CALL}") == (
        "Add it.",
        f"<|start|>assistant{CALL}",
    )
    assert in_every_cut(CALL) == ("", CALL)


def test_harmony_says_a_preamble_and_an_answer_apart() -> None:
    text = (
        "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>Two.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Done.<|return|>"
    )
    assert in_every_cut(text) == ("One.\n\nTwo.", "I look.\n\nDone.")


@pytest.mark.parametrize("begin", ["", "<think>\n", "<think>\nA\n"])
@pytest.mark.parametrize("many", ["`</think>` ", "a\n", " ", "</think>, ", "<think></think>", "[/THINK]"])
def test_no_answer_takes_long(begin: str, many: str) -> None:
    text = begin + many * 20_000
    thought, said = read([text[at : at + 5_000] for at in range(0, len(text), 5_000)])
    assert len(thought) + len(said) <= len(text)


def test_words_are_given_as_they_come() -> None:
    marks = ReasoningMarks()
    assert marks.feed("<thi") == []
    assert marks.feed("nk>Let me see") == [("thinking", "Let me see")]
    assert marks.feed(" now</thi") == [("thinking", " now")]
    assert marks.feed("nk>\n\nYes") == [("text", "Yes")]
    assert marks.feed(", it is.") == [("text", ", it is.")]


def test_what_was_shown_is_taken_back_when_only_an_end_comes() -> None:
    marks = ReasoningMarks()
    assert marks.feed("Let me see.\n") == [("text", "Let me see.\n")]
    assert marks.feed("</think>\n\nYes") == [("void", ""), ("thinking", "Let me see."), ("text", "Yes")]


ALPHABET = [
    "<think>", "</think>", "<", ">", "/", "\n", " ", "`", "```", "a", "B.", '"', "[THINK]", "[/THINK]", "<|end|>", "A",
    "<|channel|>", "analysis", "final", "<|message|>", "<|start|>assistant", "İ", "<answer>", "</answer>", "<|call|>",
    " to=functions.x", "Here is my thought process:", "Here is my response:", "assistantfinal",
]  # fmt: skip


@given(st.lists(st.sampled_from(ALPHABET), max_size=14), st.data(), st.booleans())
def test_no_cut_changes_what_is_read(words: list[str], data: st.DataObject, needs_words: bool) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = read([text], needs_words=needs_words)
    assert read(pieces, needs_words=needs_words) == whole
    assert read(list(text), needs_words=needs_words) == whole


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<[◁"), max_size=60))
def test_text_without_marks_passes_letter_for_letter(text: str) -> None:
    assert read(list(text)) == ("", text)


@given(st.lists(st.sampled_from(ALPHABET), max_size=12))
def test_no_word_is_lost(words: list[str]) -> None:
    thought, said = read(["".join(words)])
    kept = thought + said
    assert all(kept.count(word) >= words.count(word) - 1 for word in ("a", "B."))


@pytest.mark.parametrize(
    "answer",
    [
        "Models end their reasoning with one of these:\n- </think>\n- </thinking>\nWhich one depends on the model.",
        "Ends are:\n1. </think>\n2. </thought>\nThat is all.",
        "| Mark | Model |\n|---|---|\n| </think> | Qwen |\n| [/THINK] | Mistral |\n",
        "Two of them:\n* **</think>**\n* **</thinking>**\n",
    ],
)
@pytest.mark.parametrize("cut", [1, 7, 1_000])
def test_a_list_or_a_table_of_marks_is_an_answer(answer: str, cut: int) -> None:
    marks = ReasoningMarks()
    pieces = [one for at in range(0, len(answer), cut) for one in marks.feed(answer[at : at + cut])] + marks.end()
    assert {kind for kind, _ in pieces} == {"text"}
    assert "".join(text for _, text in pieces) == answer
