"""What a conversation's log says: one ordered row per thing that happened. The page is the fold of these rows.

Kinds and payloads (every payload of a turn carries `turn`):
message      {turn, text, at, mode, is_steer, agent?, attachments?, versions?, via?}   agent: of a run, via: a messenger
steer        {turn, into, round}                        a queued message was taken into the running turn
turn.start   {turn, role, model, max_rounds, max_rounds_from, is_blind?}   is_blind: of pictures only the names go
selection    {turn, round, total}                       total: tools that there are; the receipt stands with the plan
part.start   {turn, round, part, kind, attempt}         kind text | thinking; deltas of it go through the hub
part.end     {turn, round, part, kind, text, attempt, is_partial?}   "" drops the part; is_partial: cut, no history
tool.call    {turn, round, call, name, arguments, title, shown, risk, instead_of?}   instead_of: the call it replaces
tool.result  {turn, call, name, state, text, words, ms, undo, spill, is_tainted}   text: for the model, words: for the
             person; state ok | err | unknown | refused: it was not run
approval     {turn, call, approval, state, tool, verb, destination, detail, why, risk, expires_at, can_be_granted,
             can_be_changed, is_for_job}   state asked | allowed | changed | denied | expired
usage        {turn, round, model, input, output, cached, written, cost_usd, request_tokens, sees?}
notice       {turn, level, text, page}                  level info | warn: retries, limits met; page: to change it
error        {turn, text, kind, can_retry, page?}      page: of the model that failed, for who may change it
turn.end     {turn, state, rounds, seconds, tools_sent, tokens_sent, tokens_saved, can_continue}
             state done | stopped | failed | interrupted | out_of_rounds
turn.drop    {turns}   out of view: a new version takes their place. turn.show {hidden, shown}: another was chosen
undo         {turn, call, undo, state, text}            state undone | refused
summary      {summary, upto_turn, text, state, is_tainted, source?, source_title?, why?}   state made | undone
title        {title}
agent        {turn, agent, task, role, state, error}    a background run that the turn started, and how it stands
"""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

EventKind = Literal[
    "message",
    "steer",
    "turn.start",
    "selection",
    "part.start",
    "part.end",
    "tool.call",
    "tool.result",
    "approval",
    "usage",
    "notice",
    "error",
    "turn.end",
    "turn.drop",
    "turn.show",
    "undo",
    "summary",
    "title",
    "agent",
]


class Event(Struct, frozen=True, kw_only=True):
    """A row of a conversation's log; `seq` counts from 1 without gaps."""

    conversation_id: str
    seq: int
    kind: EventKind
    payload: dict[str, Any]
    turn_id: str | None
    at: datetime


class OpenPart(Struct, frozen=True, kw_only=True):
    """The part that is being written now, whole as far as it is known. A higher `attempt` replaces a lower one."""

    conversation_id: str
    turn_id: str
    part: str
    kind: Literal["text", "thinking"]
    attempt: int
    text: str
