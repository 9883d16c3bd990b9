"""What a call did and would do, in a person's words: the line of a card, and the question of one that waits."""

import json

import pytest

from cortex.services.chat.deed_words import facts, says_more
from cortex.toolkit.words import NO_CHANGE
from web.words import deed, question


@pytest.mark.parametrize(
    ("title", "arguments", "line"),
    [
        ("Add milk to shopping", {"title": "milk", "list_name": "shopping"}, "Added <b>milk</b> to shopping"),
        ("Tick off milk", {"task": "milk"}, "Ticked off <b>milk</b>"),
        ("Look at your tasks", {}, "Looked at your tasks"),
        ("Remind you at 9: call mum", {"when": "at 9", "text": "call mum"}, "Will remind you at 9: <b>call mum</b>"),
        ("Schedule: every day", {"when": "every day"}, "Scheduled: every day"),
        ("Turn off kitchen lights", {"target": "kitchen lights"}, "Turned off <b>kitchen lights</b>"),
        ("Delete the job News", {"job": "News"}, "Deleted the job <b>News</b>"),
        ("Weather report: city Berlin", {"city": "Berlin"}, "Weather report: city Berlin"),
        ("Add <b>x</b>", {"title": "<b>x</b>"}, "Added <b>&lt;b&gt;x&lt;/b&gt;</b>"),
    ],
)
def test_a_deed_is_told_in_the_past_and_its_thing_stands_out(title: str, arguments: object, line: str) -> None:
    assert deed(title, json.dumps(arguments)) == line


def test_what_changed_nothing_is_not_told_as_done() -> None:
    assert deed("Tick off milk", '{"task": "milk"}', NO_CHANGE) == "Tick off <b>milk</b>"


def test_arguments_that_cannot_be_read_leave_the_title_plain() -> None:
    assert deed("Add milk", "{not json") == "Added milk"
    assert deed("Add milk", "[1]") == "Added milk"


def test_a_question_ends_as_one_once() -> None:
    assert question("Turn off kitchen lights", '{"target": "kitchen lights"}') == "Turn off <b>kitchen lights</b>?"
    assert question("Post: is it open?", "{}") == "Post: is it open?"
    assert question("Run in the sandbox: df -h /", "{}") == "Run in the sandbox: df -h /"


def test_a_detail_of_few_facts_is_read_as_such_and_a_command_is_not() -> None:
    assert facts("When: every day\nWhat to do:\n  Say good\n  morning") == [
        ("When", "every day"),
        ("What to do", "Say good\nmorning"),
    ]
    assert facts('rm -r "/data/family"') == []
    assert facts("+ a line\n- another") == []
    assert facts(f"Text: {'x' * 500}") == []
    assert facts("") == []


def test_only_news_stands_beside_the_line() -> None:
    assert says_more("4 tasks", "Look at your tasks")
    assert not says_more("added", "Add milk")
    assert not says_more("", "Add milk")
