"""Conversations and their logs: one ordered list of events each, numbered without gaps. Turns stand beside."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, Required, TypedDict, Unpack, cast

from msgspec import Struct, field
from sqlalchemy import Result, Select, Update, func, select, update

from cortex.base.errors import NotFound
from cortex.base.events import Event, EventKind
from cortex.base.ids import new_id
from cortex.base.role import ToolMode
from cortex.storage import kept
from cortex.storage.event_rows import at_length, first_seq, shortened, turns_events
from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.schema import ConversationTable, EventTable, TurnTable
from cortex.storage.turn_statements import LIVING_HERE
from cortex.storage.words import terms, title_words

Source = Literal["chat", "job", "try", "agent", "api", "temporary"]
NewEvent = tuple[EventKind, dict[str, Any], str | None]

_MOVES_UP: frozenset[EventKind] = frozenset({"message", "turn.end"})
_TITLE_LENGTH = 200
_IS_KEPT = ConversationTable.source != "temporary"
_CAN_BE_ERASED = ConversationTable.source.in_(("temporary", "agent"))
_APPENDED = "appended"


class ConversationRow(Struct, frozen=True, kw_only=True):
    """A conversation's head. `seq` is its last event's; `selection_state` is the planner's memory.

    is_title_tainted: its title was made of words from outside, or by who had read some.
    recipe: the way of choosing tools, "" for the role's. model: the one to ask first, "" for the role's. tool_choices:
    tool -> always | never, as the person chose. uses_memory: what is remembered of the person goes along, and what they
    say may be remembered.
    """

    id: str
    title: str
    is_title_auto: bool
    is_title_tainted: bool
    role: str
    mode: ToolMode
    max_rounds: int | None
    is_pinned: bool
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    deleted_at: datetime | None
    seq: int
    turn_count: int
    running_turn: str | None
    selection_state: dict[str, Any]
    source: Source
    parent_id: str | None
    recipe: str = ""
    model: str = ""
    uses_memory: bool = True
    tool_choices: dict[str, Any] = field(default_factory=dict)

    @property
    def never(self) -> frozenset[str]:
        """The tools that are not to be used in it."""
        return frozenset(name for name, use in self.tool_choices.items() if use == "never")


class NewConversation(TypedDict, total=False):
    """The values of a new conversation, as `ConversationRow` has it."""

    is_title_tainted: Required[bool]
    max_rounds: int | None
    source: Source
    parent_id: str | None
    recipe: str
    model: str
    uses_memory: bool
    tool_choices: dict[str, Any]


class ConversationsRepository(Repository):
    """A user's conversations."""

    async def create(
        self, role: str, mode: ToolMode, title: str = "", *, id: str | None = None, **said: Unpack[NewConversation]
    ) -> ConversationRow:
        """A new conversation; an `id` that the user already has is handed back as it stands."""
        at = self.clock()
        conversation_id = id or new_id(self.clock)
        kept = {"title": title[:_TITLE_LENGTH], "title_words": title_words(title[:_TITLE_LENGTH])}
        head = {"id": conversation_id, "role": role, "mode": mode, "created_at": at, "updated_at": at}
        await self._is_new(ConversationTable, {**said, **head, **kept, "is_title_auto": not title})
        return await self.get(conversation_id)

    @reading
    async def standing(self, ids: Sequence[str]) -> frozenset[str]:
        """Those of these that are there and were not deleted."""
        statement = select(ConversationTable.id).where(
            self._checked(ConversationTable),
            ConversationTable.id.in_(ids),
            ConversationTable.deleted_at.is_(None),
        )
        return frozenset((await self.session.execute(statement)).scalars())

    @reading
    async def get(self, id: str, *, with_deleted: bool = False) -> ConversationRow:
        """The conversation; NotFound when it is absent, deleted or another user's."""
        found = await self._row_of(ConversationRow, _head(with_deleted=with_deleted), id=id)
        if found is None:
            raise NotFound("This conversation does not exist.")
        return found

    @reading
    async def list(
        self,
        query: str = "",
        limit: int = 50,
        before: datetime | None = None,
        *,
        source: Source | None = None,
        is_archived: bool | None = False,
    ) -> Sequence[ConversationRow]:
        """The newest first; `query`: how words of the title begin; `before`: only those last used before then.

        Without a `source` all but temporary ones, and calls by hand ("try"), agents and programs: nobody talks there.
        is_archived: only those that are; False: only those that are not; None: both.
        """
        if query.strip() and not terms(query):
            return []
        is_talk = ConversationTable.source.not_in(("try", "agent", "api", "temporary"))
        statement = self._heads().where(
            ConversationTable.deleted_at.is_(None),
            ConversationTable.source == source if source else is_talk,
            *(ConversationTable.title_words.contains(f" {term}") for term in terms(query)),
        )
        if is_archived is not None:
            archived = ConversationTable.archived_at
            statement = statement.where(archived.is_not(None) if is_archived else archived.is_(None))
        if before is not None:
            statement = statement.where(ConversationTable.updated_at < before)
        order = (ConversationTable.updated_at.desc(), ConversationTable.id.desc())
        return await self._all(ConversationRow, statement.order_by(*order).limit(limit))

    @reading
    async def agents_of(self, id: str) -> Sequence[ConversationRow]:
        """The conversations of the background agents that were started here, the newest first."""
        statement = self._heads().where(ConversationTable.parent_id == id, ConversationTable.source == "agent")
        return await self._all(ConversationRow, statement.order_by(ConversationTable.created_at.desc()))

    @reading
    async def in_role(self, role: str) -> Sequence[ConversationRow]:
        """Those that go on in this role, the newest first; not what background agents and calls by hand left."""
        statement = self._heads().where(
            ConversationTable.deleted_at.is_(None),
            ConversationTable.role == role,
            ConversationTable.source.not_in(("try", "agent")),
        )
        return await self._all(ConversationRow, statement.order_by(ConversationTable.updated_at.desc()))

    @reading
    async def pinned(self) -> Sequence[ConversationRow]:
        """The pinned ones that are not archived, the newest first."""
        statement = self._heads().where(
            _IS_KEPT,
            ConversationTable.deleted_at.is_(None),
            ConversationTable.archived_at.is_(None),
            ConversationTable.is_pinned,
        )
        return await self._all(ConversationRow, statement.order_by(ConversationTable.updated_at.desc()))

    @reading
    async def deleted(self, after: datetime, *, skip: int, limit: int) -> Sequence[ConversationRow]:
        """Those that a person talked in and deleted after then, the latest first, behind the first `skip`."""
        statement = self._heads().where(
            ConversationTable.deleted_at > after,
            ConversationTable.source.not_in(("try", "agent", "api", "temporary")),
        )
        latest = statement.order_by(ConversationTable.deleted_at.desc(), ConversationTable.id)
        return await self._all(ConversationRow, latest.offset(skip).limit(limit))

    @reading
    async def ids(self) -> Sequence[str]:
        """Of all that were not deleted and are to be kept, the oldest first."""
        mine = (ConversationTable.owner_id == self.owner_id, ConversationTable.deleted_at.is_(None), _IS_KEPT)
        statement = select(ConversationTable.id).where(*mine).order_by(ConversationTable.created_at)
        return (await self.session.execute(statement)).scalars().all()

    @reading
    async def is_known(self, id: str) -> bool:
        """Tell whether there is one of this id, deleted or not."""
        statement = select(ConversationTable.id).where(
            ConversationTable.owner_id == self.owner_id, ConversationTable.id == id
        )
        return (await self.session.execute(statement)).first() is not None

    async def date_back(self, id: str, created_at: datetime, updated_at: datetime) -> None:
        """Say when it was, for one that was taken over from elsewhere."""
        await self._set(id, created_at=created_at, updated_at=updated_at)

    async def rename(self, id: str, title: str, by_user: bool = True, *, is_tainted: bool) -> None:
        """Set the title. One that the user gave is not replaced by an automatic one any more."""
        change = self._change(ConversationTable).where(ConversationTable.id == id)
        if not by_user:
            change = change.where(ConversationTable.is_title_auto)
        touched = await self._touched(
            change.values(
                title=title[:_TITLE_LENGTH],
                title_words=title_words(title[:_TITLE_LENGTH]),
                is_title_auto=not by_user,
                is_title_tainted=is_tainted,
            ),
            ConversationTable.id,
        )
        if by_user and not touched:
            raise NotFound("This conversation does not exist.")

    async def set_recipe(self, id: str, recipe: str) -> None:
        """Choose its tools in another way from the next message on; "" = as its role does."""
        await self._set(id, recipe=recipe)

    async def choose_tools(self, id: str, choices: Mapping[str, str]) -> None:
        """Always or never use these tools in it from the next message on; "" leaves one to the planner again."""
        kept = {**(await self.get(id)).tool_choices, **choices}
        await self._set(id, tool_choices={name: use for name, use in sorted(kept.items()) if use})

    async def set_model(self, id: str, model: str) -> None:
        """Ask this model first from the next message on; "" = as its role does."""
        await self._set(id, model=model)

    async def set_memory(self, id: str, *, is_used: bool) -> None:
        """Use what is remembered of the person in it from the next message on, or no longer."""
        await self._set(id, uses_memory=is_used)

    async def set_role(self, id: str, role: str) -> None:
        """Give it another role, from the next turn on."""
        await self._set(id, role=role)

    async def move_role(self, ids: Sequence[str], before: str, role: str) -> None:
        """Give those of these that are in the role `before` another one, from the next turn on."""
        change = self._change(ConversationTable).where(ConversationTable.id.in_(ids), ConversationTable.role == before)
        await self.session.execute(change.values(role=role))

    async def set_mode(self, id: str, mode: ToolMode) -> None:
        """Give it another tool mode, from the next turn on."""
        await self._set(id, mode=mode)

    async def set_max_rounds(self, id: str, max_rounds: int | None) -> None:
        """Limit its rounds; None leaves that to role, model and settings."""
        await self._set(id, max_rounds=max_rounds)

    async def pin(self, id: str, on: bool) -> None:
        """Keep it at the top of the list, or no longer."""
        await self._set(id, is_pinned=on)

    async def delete(self, id: str) -> None:
        """Hide it everywhere; `restore` brings it back."""
        await self._set(id, deleted_at=self.clock())

    async def restore(self, id: str) -> None:
        """Bring a deleted conversation back."""
        await self._set(id, deleted_at=None)

    async def erase(self, id: str) -> None:
        """Erase a temporary one, or one of an agent, with all its words; NotFound for any other."""
        gone = self._remove(ConversationTable).where(ConversationTable.id == id, _CAN_BE_ERASED)
        await self._must_touch(gone, ConversationTable.id, "This conversation does not exist.")

    async def save_selection_state(self, id: str, state: dict[str, Any]) -> None:
        """Keep the planner's memory."""
        await self._set(id, selection_state=state)

    async def append(self, conversation_id: str, events: Sequence[NewEvent]) -> Sequence[Event]:
        """Add (kind, payload, turn id) to the log in this transaction; the rows with their numbers, no gap ever.

        The counter's row is locked until the commit, so that writers queue up; NotFound for a foreign conversation.
        """
        at = self.clock()
        counting = _counting(
            moves_up=any(kind in _MOVES_UP for kind, _, _ in events),
            brings_back=any(kind == "message" for kind, _, _ in events),
        )
        last: int | None = (await self._run(counting, id=conversation_id, count=len(events), at=at)).scalar()
        if last is None:
            raise NotFound("This conversation does not exist.")
        added = [
            Event(conversation_id=conversation_id, seq=seq, kind=kind, payload=payload, turn_id=turn_id, at=at)
            for seq, (kind, payload, turn_id) in enumerate(events, start=last - len(events) + 1)
        ]
        await self._write(added)
        self.session.info.setdefault(_APPENDED, []).extend(added)
        return added

    def appended(self, conversation_id: str) -> Sequence[Event]:
        """Return what this transaction has added to the log so far."""
        return [event for event in self.session.info.get(_APPENDED, ()) if event.conversation_id == conversation_id]

    @reading
    async def events(
        self, conversation_id: str, after: int = 0, limit: int | None = None, before: int | None = None
    ) -> Sequence[Event]:
        """The log in order, from the one past `after` up to the one ahead of `before`; at most the first `limit`."""
        statement = self._mine(Event, EventTable).where(
            EventTable.conversation_id == conversation_id, EventTable.seq > after
        )
        if before is not None:
            statement = statement.where(EventTable.seq < before)
        return self._events(await self.session.execute(statement.order_by(EventTable.seq).limit(limit)))

    @reading
    async def of_turn(self, conversation_id: str, turn_id: str) -> Sequence[Event]:
        """The events of one turn, in order."""
        return self._events(await self._run(turns_events(), conversation_id=conversation_id, turn_id=turn_id))

    @reading
    async def turns_told(self, conversation_id: str, text: str) -> Sequence[str]:
        """The turns in which this notice stands."""
        notices = self._mine(Event, EventTable).where(
            EventTable.conversation_id == conversation_id, EventTable.kind == "notice"
        )
        found = self._events(await self.session.execute(notices.order_by(EventTable.seq)))
        return [one.turn_id for one in found if one.turn_id and one.payload["text"] == text]

    @reading
    async def first_seq(self, conversation_id: str, turn_id: str) -> int | None:
        """The number of a turn's first event, None when it has none."""
        found = await self._run(first_seq(), conversation_id=conversation_id, turn_id=turn_id)
        return cast("int | None", found.scalar_one())

    async def copy_log(self, events: Sequence[Event], into: str, *, turn_count: int) -> None:
        """Lay a log, already renumbered from 1, into an empty conversation and set its counters (a branch)."""
        await self._set(into, seq=len(events), turn_count=turn_count)
        await self._write(events)

    def _heads(self) -> Select[Any]:
        running = (
            select(func.min(TurnTable.id))
            .where(TurnTable.conversation_id == ConversationTable.id)
            .where(LIVING_HERE, TurnTable.state.in_(("running", "waiting")))
            .correlate(ConversationTable)
            .scalar_subquery()
            .label("running_turn")
        )
        return self._mine(ConversationRow, ConversationTable, running)

    async def _set(self, id: str, **values: Any) -> None:  # Any: one of the columns' own types each
        if (await self._run(kept.setting(ConversationTable, tuple(values)), id=id, **values)).first() is None:
            raise NotFound("This conversation does not exist.")

    def _events(self, rows: Result[Any]) -> Sequence[Event]:
        """These rows, their payloads at full length."""
        found = (kept.named(tuple(rows.keys()), row) for row in rows)
        return [Event(**{**row, "payload": at_length(row["payload"], row["turn_id"])}) for row in found]

    async def _write(self, events: Sequence[Event]) -> None:
        short = ({**as_row(event), "payload": shortened(event.payload, event.turn_id)} for event in events)
        await self._add(EventTable, list(short))


@lru_cache(maxsize=256)
def _head(*, with_deleted: bool) -> Select[Any]:
    head, turn = kept.columns(ConversationTable), kept.columns(TurnTable)
    running = select(func.min(turn.id)).where(turn.conversation_id == head.id)
    running = running.where(LIVING_HERE, turn.state.in_(("running", "waiting")))
    label = running.correlate(ConversationTable.__table__).scalar_subquery().label("running_turn")
    found = kept.owned(ConversationRow, ConversationTable, label).where(head.id == kept.given("id"))
    return found if with_deleted else found.where(head.deleted_at.is_(None))


@lru_cache(maxsize=256)
def _counting(*, moves_up: bool, brings_back: bool) -> Update:
    """Count `count` more events of the conversation; the last one's number. brings_back: out of the archive."""
    head = kept.columns(ConversationTable)
    values: dict[str, Any] = {"seq": head.seq + kept.given("count")}
    values |= {"updated_at": kept.given("at")} if moves_up else {}
    values |= {"archived_at": None} if brings_back else {}
    change = update(ConversationTable.__table__)  # type: ignore[arg-type]  # typed as what it may be, and is a table
    return change.where(kept.is_own(ConversationTable), head.id == kept.given("id")).values(values).returning(head.seq)


class AllConversationsRepository(SharedRepository):
    """The logs of everybody: for the signals between processes (`engine/relay.py`), and to end temporary chats."""

    @reading
    async def temporary(self, before: datetime) -> Sequence[tuple[str, str]]:
        """Owner and id of the temporary ones that were last used before then and in which no turn lives."""
        living = select(TurnTable.id).where(
            TurnTable.conversation_id == ConversationTable.id, TurnTable.state.in_(("queued", "running", "waiting"))
        )
        statement = select(ConversationTable.owner_id, ConversationTable.id).where(
            ~_IS_KEPT, ConversationTable.updated_at < before, ~living.exists()
        )
        return [(row.owner_id, row.id) for row in (await self.session.execute(statement)).all()]

    @reading
    async def seqs(self, ids: Sequence[str]) -> dict[str, int]:
        """The number of the last event of each of these conversations that stands."""
        statement = select(ConversationTable.id, ConversationTable.seq).where(ConversationTable.id.in_(ids))
        return {row.id: row.seq for row in (await self.session.execute(statement)).all()}
