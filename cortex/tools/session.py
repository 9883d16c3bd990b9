"""The user's own past conversations: find words in them, read one. What a tool once read from outside stays marked."""

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.messages import Text, ToolCall, ToolResult
from cortex.base.zone import moment
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messages import MessageRow, MessagesRepository
from cortex.storage.search import SearchRepository
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output
from cortex.toolkit.stretch import stretch

SUMMARY = "earlier conversations"
NEEDS = ("Search", "Conversations", "Messages")
ROLES = {"orchestrator": ("session",)}
TESTED = "its tables, on SQLite and PostgreSQL, full text"
HITS = 12
RECENT = 15
PART_CHARACTERS = 700
SPEAKERS = {"user": "User", "assistant": "You", "tool": "Tool", "system": "System"}


@tool(words="Search your conversations: {query}", effect="read", reads_private=True)
async def session_search(ctx: Ctx, query: str) -> Output:
    """Search earlier conversations for what was said.

    Args:
        query: Words that were said; all must be in one message.
    """
    hits = [
        hit
        for hit in await ctx.use(SearchRepository).messages_matching(query, HITS * 2)
        if hit.conversation_id != ctx.conversation_id
    ][:HITS]
    lines = [
        f"- {moment(hit.at, ctx.user.time_zone)} {SPEAKERS.get(hit.speaker, hit.speaker)}, in {hit.title!r} "
        f"(conversation {hit.conversation_id}){' [from outside]' if hit.is_tainted else ''}: {hit.snippet}"
        for hit in hits
    ]
    text = "\n".join(lines) or f"No earlier conversation has {query!r}. Try fewer or other words."
    return Output(text=text, is_tainted=any(hit.is_tainted or hit.is_title_tainted for hit in hits))


@tool(words="Read a conversation[: {conversation}]", effect="read", reads_private=True)
async def session_read(ctx: Ctx, conversation: str = "", offset: int = 0) -> Output:
    """Read an earlier conversation, or list the latest ones.

    Args:
        conversation: Its id, as session_search gives it; empty lists the latest.
        offset: Character to start at.
    """
    if not conversation:
        return await _latest(ctx)
    try:
        head = await ctx.use(ConversationsRepository).get(conversation.strip())
    except NotFound:
        raise ToolFailed("There is no such conversation. Find its id with session_search.") from None
    stored = await ctx.use(MessagesRepository).of_conversation(head.id)
    text = "\n".join(line for message in stored if (line := _message_text(message)))
    title = f"{head.title!r}, {moment(head.created_at, ctx.user.time_zone)}\n"
    return Output(
        text=title + (stretch(text, offset, "session_read") or "(nothing was said)"),
        is_tainted=head.is_title_tainted or any(map(_is_tainted, stored)),
    )


async def _latest(ctx: Ctx) -> Output:
    """The newest conversations, by their titles."""
    heads = [
        head for head in await ctx.use(ConversationsRepository).list(limit=RECENT + 1) if head.id != ctx.conversation_id
    ]
    lines = [
        f"- {moment(head.updated_at, ctx.user.time_zone)} {head.title or '(no title)'!r} (conversation {head.id})"
        for head in heads[:RECENT]
    ]
    text = "\n".join(lines) or "There is no earlier conversation."
    return Output(text=text, is_tainted=any(head.is_title_tainted for head in heads[:RECENT]))


def _is_tainted(stored: MessageRow) -> bool:
    return stored.is_tainted or any(isinstance(part, ToolResult) and part.tainted for part in stored.message.parts)


def _message_text(stored: MessageRow) -> str:
    """A message in one paragraph: words, the names of the calls, results cut short."""
    message = stored.message
    told = [message.said] if message.speaker == "user" else [_part(part) for part in message.parts]
    said_parts = [part for part in told if part]
    mark = " [from outside]" if _is_tainted(stored) else ""
    return f"{SPEAKERS.get(stored.message.speaker, '?')}{mark}: {' '.join(said_parts)}" if said_parts else ""


def _part(part: object) -> str:
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f"[called {part.name}]"
        case ToolResult():
            cut = "..." if len(part.text) > PART_CHARACTERS else ""
            return f"[{part.name}] {part.text[:PART_CHARACTERS]}{cut}"
        case _:
            return ""
