"""The fold of a conversation's log: what each event shows, changes and takes away."""

from datetime import UTC, datetime, timedelta
from typing import Any

from cortex.base.events import Event
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import (
    ApprovalCard,
    CallCard,
    CallGroup,
    SteerPart,
    TextPart,
    TurnView,
    dom_id,
)

AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
T1, T2 = "turn:01A", "turn:01B"


class Log:
    """Writes events in order and folds each at once."""

    def __init__(self) -> None:
        self.fold = Transcript()
        self.events: list[Event] = []

    def tell(self, event_kind: Any, /, **payload: Any) -> list[tuple[str, str]]:
        seq = len(self.events) + 1
        turn = payload.get("turn")
        at = AT + timedelta(seconds=seq)
        self.events.append(Event(conversation_id="c", seq=seq, kind=event_kind, payload=payload, turn_id=turn, at=at))
        return [(change.kind, change.part) for change in self.fold.apply(self.events[-1])]

    def ask(self, turn: str = T1, text: str = "hello", ordinal: int = 1, **more: Any) -> list[tuple[str, str]]:
        return self.tell("message", turn=turn, text=text, mode="auto", is_steer=False, ordinal=ordinal, **more)

    def call(self, call: str, turn: str = T1, name: str = "task_list") -> list[tuple[str, str]]:
        return self.tell("tool.call", turn=turn, round=1, call=call, name=name, arguments="{}", title="", risk="low")

    def end(self, state: str = "done", turn: str = T1) -> list[tuple[str, str]]:
        return self.tell("turn.end", turn=turn, state=state, rounds=1, seconds=1.0, can_continue=False)

    def turn(self, turn: str = T1) -> TurnView:
        found = self.fold.turn(turn)
        assert found is not None
        return found


def started() -> Log:
    log = Log()
    log.ask()
    log.tell("turn.start", turn=T1, role="orchestrator", model="m", max_rounds=5, max_rounds_from="CORTEX_MAX_ROUNDS")
    return log


def asked(log: Log, state: str = "asked") -> list[tuple[str, str]]:
    known = {"tool": "shell_exec", "verb": "run", "destination": "sandbox", "detail": "ls", "why": "", "risk": "high"}
    until = (AT + timedelta(minutes=5)).isoformat()
    return log.tell("approval", turn=T1, call="k1", approval="a1", state=state, expires_at=until, **known)


def test_a_message_opens_a_turn_that_is_being_answered() -> None:
    log = Log()
    assert log.ask() == [("turn.new", "")]
    assert (log.turn().state, log.turn().key) == ("running", "01A")


def test_an_event_that_was_folded_already_changes_nothing() -> None:
    log = started()
    assert log.fold.apply(log.events[0]) == []


def test_a_message_sent_meanwhile_waits_and_gets_its_place_when_it_starts() -> None:
    log = started()
    log.ask(T2, "and this", 2)
    assert log.turn(T2).state == "queued"
    log.end()
    assert ("turn.start", "") in log.tell("turn.start", turn=T2, role="r", model="m", max_rounds=5, max_rounds_from="")
    assert log.turn(T2).is_live


def test_a_queued_message_that_steers_becomes_a_part_of_the_running_turn() -> None:
    log = started()
    log.ask(T2, "in French please", 2)
    changes = log.tell("steer", turn=T2, into=T1, round=1)
    assert [kind for kind, _ in changes] == ["turn.drop", "part.new"]
    assert log.fold.turn(T2) is None
    assert [part.text for part in log.turn().parts if isinstance(part, SteerPart)] == ["in French please"]


def test_a_part_opens_ends_and_keeps_its_text() -> None:
    log = started()
    assert ("part.new", "p1") in log.tell("part.start", turn=T1, round=1, part="p1", kind="text", attempt=1)
    assert log.turn().status.phase == "writing"
    assert log.tell("part.end", turn=T1, round=1, part="p1", kind="text", text="Hi.", attempt=1) == [("part", "p1")]
    assert log.turn().parts == (TextPart(id="p1", text="Hi."),)


def test_a_higher_attempt_starts_the_part_again() -> None:
    log = started()
    log.tell("part.start", turn=T1, round=1, part="p1", kind="text", attempt=1)
    changes = log.tell("part.start", turn=T1, round=1, part="p1", kind="text", attempt=2)
    assert ("part.again", "p1") in changes


def test_an_empty_end_takes_the_part_away() -> None:
    log = started()
    log.tell("part.start", turn=T1, round=1, part="p1", kind="text", attempt=1)
    assert log.tell("part.end", turn=T1, round=1, part="p1", kind="text", text="", attempt=1) == [("body", "")]
    assert log.turn().parts == ()


def test_more_than_three_calls_in_a_row_fold_into_one_line() -> None:
    log = started()
    for number in range(4):
        log.call(f"k{number}")
    (group,) = log.turn().blocks
    assert isinstance(group, CallGroup)
    assert group.is_folded
    assert group.id == "k0"


def test_text_between_calls_parts_their_groups() -> None:
    log = started()
    log.call("k1")
    log.tell("part.end", turn=T1, round=1, part="p1", kind="text", text="then", attempt=1)
    log.call("k2")
    assert [type(block).__name__ for block in log.turn().blocks] == ["CallGroup", "TextPart", "CallGroup"]


def test_a_question_shows_once_and_goes_when_it_is_answered_anywhere() -> None:
    log = started()
    log.call("k1", name="shell_exec")
    asked(log)
    assert log.turn().status.phase == "waiting"
    assert [type(part) for part in log.turn().parts] == [CallCard, ApprovalCard]
    assert ("body", "") in asked(log, "allowed")
    (card,) = log.turn().parts
    assert isinstance(card, CallCard)
    assert (card.state, card.decision) == ("run", "allowed")


def test_a_card_tells_that_its_work_was_taken_back() -> None:
    log = started()
    log.call("k1")
    log.tell("tool.result", turn=T1, call="k1", name="task_create", state="ok", text="made", ms=3, undo="u1")
    assert log.tell("undo", turn=T1, call="k1", undo="u1", state="undone", text="gone") == [("undo", "k1")]
    (card,) = log.turn().parts
    assert isinstance(card, CallCard)
    assert (card.undo_id, card.undo_state) == ("", "undone")
    log.tell("undo", turn=T1, call="k1", undo="u1", state="undone", text="gone", next="u2")
    log.tell("undo", turn=T1, call="k1", undo="u2", state="redone", text="back", next="u3")
    (card,) = log.turn().parts
    assert isinstance(card, CallCard)
    assert (card.undo_id, card.undo_state) == ("u3", "")


def test_an_undone_card_of_a_turn_above_the_page_is_still_named() -> None:
    assert Log().tell("undo", turn="turn:old", call="k1", undo="u1", state="undone", text="") == [("undo", "k1")]


def test_an_edit_hides_the_turn_and_what_followed() -> None:
    log = started()
    log.end()
    log.ask(T2, "two", 2)
    assert [kind for kind, _ in log.tell("turn.drop", turns=[T1, T2])] == ["turn.drop", "turn.drop"]
    assert log.fold.turns == ()


def test_a_stopped_turn_closes_its_questions_and_calls() -> None:
    log = started()
    log.call("k1", name="shell_exec")
    asked(log)
    log.end("stopped")
    (card,) = log.turn().parts
    assert isinstance(card, CallCard)
    assert card.state == "unknown"
    assert log.fold.running is None


def test_a_summary_stands_after_its_last_turn_until_it_is_undone() -> None:
    log = started()
    log.end()
    log.tell("summary", summary="s1", upto_turn=1, text="so far", state="made", is_tainted=False)
    marker = log.fold.marker_after(log.turn())
    assert marker is not None
    assert marker.text == "so far"
    assert log.tell("summary", summary="s1", upto_turn=1, text="", state="undone", is_tainted=False) == [
        ("marker.drop", "s1")
    ]
    assert log.fold.marker_after(log.turn()) is None


def test_folding_at_once_or_one_by_one_gives_the_same() -> None:
    log = started()
    log.call("k1")
    log.tell("title", title="A title")
    log.end()
    whole = Transcript(log.events)
    assert (whole.turns, whole.title) == (log.fold.turns, "A title")


def test_element_ids_hold_only_safe_characters() -> None:
    assert dom_id("c", "turn:01A", 'x.1:"<') == "c01A-x-1---"


def test_a_version_that_is_shown_again_has_all_that_came_to_it_meanwhile() -> None:
    log = started()
    log.call("k1")
    log.end()
    assert [kind for kind, _ in log.tell("turn.drop", turns=[T1])] == ["turn.drop"]
    log.ask(T2, "hello", 2, versions=[T1, T2])
    log.end(turn=T2)
    log.tell("undo", turn=T1, call="k1", state="undone", text="")
    assert [turn.id for turn in log.fold.turns] == [T2]
    assert log.turn(T2).versions == (T1, T2)
    log.tell("turn.show", hidden=[T2], shown=[T1])
    assert [turn.id for turn in log.fold.turns] == [T1]
    assert [part.undo_state for part in log.turn().parts if isinstance(part, CallCard)] == ["undone"]


def test_the_versions_that_are_known_already_count_more_than_those_of_an_older_row() -> None:
    log = Log()
    log.fold = Transcript(versions={T2: (T1, T2, "turn:01C")})
    log.ask(T2, "hello", 2, versions=[T1, T2])
    assert log.turn(T2).versions == (T1, T2, "turn:01C")
