"""A plan's input that an older version of Cortex stored is read as it was, and verified by the digest it left."""

import json
from typing import Any

import pytest

from cortex.base import portable
from cortex.selection.types import PastTurn
from cortex.services.tools.replays import fingerprint, rebuilt

# As it stood in the table on 2026-11-27.
STORED = """
{"role": {"name": "orchestrator", "tools": ["all"], "admin_tools": [], "core": ["tasks"], "budget_tokens": 900,
 "is_admin_only": false, "within": null, "lacks": []}, "is_admin": true, "channel": "chat", "mode": "auto",
 "recipe": "cortex", "memory": {"number": 2, "highest": 3, "is_open": true, "sent": [{"name": "tools_discover",
 "form": "full", "stage": "epoch", "reason": "the way"}, {"name": "task_create", "form": "stub", "stage": "fuse",
 "reason": "similar"}], "opening": 2, "mode": "auto", "role": "orchestrator", "model": "m", "version": "3f2a",
 "permitted": "ab", "summary": "", "turn": "t0", "last_at": "2026-11-20T10:00:00+00:00", "request_tokens": 700,
 "history_tokens": 60, "noted": ["task_list"], "recipe": "cortex", "grown": []}, "profile": {"caches": true,
 "read_factor": 1.0, "write_factor": 1.0, "minimum_tokens": 1024, "life_s": 300, "late_tools": "rewrite",
 "strength": "strong"}, "model": "m", "now": "2026-11-20T10:01:00+00:00", "round": 2, "is_last": false,
 "found": ["task_list"], "missing": "", "is_heard": false, "summary": "s1", "window_tokens": 32000,
 "fixed_tokens": 812, "history_tokens": 120, "encoder_skipped": "", "skills": [],
 "ready": "4d1f605a2130ca48ad087d74", "version": "3f2a", "digest": "dbc10b16ddab94e1900abb82"}
"""
MESSAGE, READY = "And what is on my list?", ("task_create", "task_list")
PAST = PastTurn(
    user="add milk to my list",
    assistant="Added.",
    called=("task_create",),
    untrusted="{}",
    arguments=("milk",),
    results=("{}",),
)
FACT = {"id": "f1", "text": "is vegan", "score": 0.5, "reason": "r", "tokens": 9, "is_tainted": False}


def digest_of(stored: dict[str, Any], message: str = MESSAGE) -> str:
    return fingerprint(rebuilt(stored, "t1", message, portable.plain((PAST,)), READY))


def test_what_was_stored_before_facts_and_choices_is_verified() -> None:
    stored = json.loads(STORED)
    given = rebuilt(stored, "t1", MESSAGE, portable.plain((PAST,)), READY)
    assert (given.memory.noted, given.found, given.never) == (("task_list",), ("task_list",), ())
    assert digest_of(stored) == stored["digest"]


def test_what_was_stored_with_them_is_verified() -> None:
    stored = {**json.loads(STORED), "facts": [FACT], "never": ["git_log"]}
    stored["memory"]["never"] = ["git_log"]
    assert digest_of(stored) == "01e5c02eb00f5b7a048aac8b"


@pytest.mark.parametrize("change", [{"round": 3}, {"always": ["git_log"]}, {"window_tokens": 0}], ids=str)
def test_another_input_is_told_from_it(change: dict[str, Any]) -> None:
    stored = json.loads(STORED)
    assert digest_of({**stored, **change}) != stored["digest"]
    assert digest_of(stored, "another message") != stored["digest"]
