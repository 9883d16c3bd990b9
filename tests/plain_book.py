"""A call book and an approval desk in memory, faithful to the ports, for tests of the gate."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from cortex.base.turn import Turn
from cortex.base.user import User
from cortex.ports.loop import ApprovalRequest, CallEnding, CallFacts, CallRecord, ChangedCall

ADMIN = User(id="u1", name="ada", rank="admin")
MEMBER = User(id="u2", name="bob", rank="member")
STANDING = CallFacts(
    user=ADMIN,
    role="orchestrator",
    permitted=frozenset(),
    is_tainted=False,
    taint_source="",
    has_read_private=False,
    typed_hosts=frozenset(),
    discoveries=0,
    same_calls={},
    now=datetime(2026, 11, 21, 8, tzinfo=UTC),
)


@dataclass
class PlainBook:
    standing_now: CallFacts = STANDING
    records: dict[str, CallRecord] = field(default_factory=dict)
    intents: dict[str, str] = field(default_factory=dict)
    endings: dict[str, CallEnding] = field(default_factory=dict)
    spilled: dict[str, str] = field(default_factory=dict)
    has_noted_private: bool = False

    def now(self, **facts: Any) -> None:
        self.standing_now = replace(self.standing_now, **facts)

    async def facts(self, turn: Turn, call_id: str) -> CallFacts:
        return self.standing_now

    async def is_begun(self, turn: Turn, call_id: str) -> bool:
        return call_id in self.intents and call_id not in self.endings

    async def record(self, turn: Turn, round_number: int, call: CallRecord) -> None:
        self.records.setdefault(call.id, call)

    async def intend(self, turn: Turn, call_id: str) -> Any:
        if call_id in self.endings:
            return "ended"
        known = call_id in self.intents
        self.intents[call_id] = "intended"
        return "again" if known else "first"

    async def end(self, turn: Turn, call: CallRecord, ending: CallEnding) -> CallEnding:
        return self.endings.setdefault(call.id, ending)

    async def note_private(self, turn: Turn) -> None:
        self.has_noted_private = True

    async def spill(self, turn: Turn, call_id: str, text: str) -> str:
        self.spilled[call_id] = text
        return "results/x.txt"


@dataclass
class PlainDesk:
    grants: set[tuple[str, str]] = field(default_factory=set)
    pleas: dict[str, ApprovalRequest] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    changes: dict[str, ChangedCall] = field(default_factory=dict)

    async def is_asked(self, turn: Turn, call: CallRecord) -> bool:
        return call.id in self.pleas

    async def is_asked_again(self, turn: Turn, call: CallRecord) -> bool:
        return False

    async def granted(self, turn: Turn, call: CallRecord, plea: ApprovalRequest) -> bool:
        return plea.is_grantable and (plea.tool, plea.destination) in self.grants

    async def ask(self, turn: Turn, call: CallRecord, plea: ApprovalRequest) -> str:
        self.pleas[call.id] = plea
        self.hashes[call.id] = call.hash
        return call.id

    async def changed(self, turn: Turn, call_id: str) -> ChangedCall:
        return self.changes[call_id]

    async def consume(self, turn: Turn, approval_id: str, arguments_hash: str) -> bool:
        is_good = self.hashes.get(approval_id) == arguments_hash and approval_id not in self.used
        self.used.add(approval_id)
        return is_good
