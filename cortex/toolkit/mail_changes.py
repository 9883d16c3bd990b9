"""Changes of mails made ready and kept, ahead of any question: what was asked about is what is done, once.

Each gives what the call acts on (`Ctx.target`): the change, the fact in words, where to (`aim`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cortex.base.errors import NotFound, ToolFailed
from cortex.ports.mail import Mailboxes, MailDraft
from cortex.toolkit.context import Ctx
from cortex.toolkit.mails import (
    NO_MAIL,
    accounts_of,
    folder_in,
    heads_of,
    id_of,
    ids_of,
    people_of,
    subjects,
    who,
)
from cortex.toolkit.server_changes import target_of
from cortex.toolkit.words import counted

TEXT_CHARACTERS = 50_000
SUBJECT_CHARACTERS = 200
Mark = Literal["read", "unread", "flagged", "unflagged"]
_MARKS: dict[Mark, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "read": (("seen",), ()),
    "unread": ((), ("seen",)),
    "flagged": (("flagged",), ()),
    "unflagged": ((), ("flagged",)),
}


async def to_draft(ctx: Ctx, given: Mapping[str, Any]) -> dict[str, Any]:
    """Make the draft ready and keep it."""

    async def ready() -> dict[str, Any]:
        accounts = await accounts_of(ctx)
        text, subject = given["text"].strip(), " ".join(given["subject"].split())
        if not 0 < len(text) <= TEXT_CHARACTERS or len(subject) > SUBJECT_CHARACTERS:
            raise ToolFailed(
                f"A draft has a text of 1 to {TEXT_CHARACTERS} characters and a subject of up to {SUBJECT_CHARACTERS}."
            )
        answers, to = id_of(given["answers"]), await people_of(ctx, given["to"])
        if not answers and not (to or subject):
            raise ToolFailed("Say whom the draft is to, or its subject.")
        draft = MailDraft(
            to=to,
            subject=subject,
            text=text,
            account_id="" if answers else accounts[0].id,
            answers=answers,
            to_all=given["to_all"],
        )
        try:
            change = await ctx.use(Mailboxes).ready_draft(ctx.call_id, draft)
            reply = await ctx.use(Mailboxes).reply(answers, to_all=draft.to_all) if answers else None
        except NotFound as error:
            raise ToolFailed(NO_MAIL.format(id=answers)) from error
        named = ", ".join(who(one) for one in to or (reply.to if reply else ())) or "nobody yet"
        about = subject or (reply.subject if reply else "") or "No subject"
        account = next((one for one in accounts if one.id == change.account_id), accounts[0])
        return target_of(change, f"“{about}” to {named}", f"Drafts of {account.address or account.label}: to {named}")

    return await ctx.target(ready)


async def to_move(ctx: Ctx, mails: Sequence[str], folder: str) -> dict[str, Any]:
    """Make the move ready and keep it."""

    async def ready() -> dict[str, Any]:
        heads = await heads_of(ctx, ids_of(mails))
        account = next(one for one in await accounts_of(ctx) if one.id == heads[0].account_id)
        place = folder_in(account, folder)
        moved = [head for head in heads if head.folder.id != place.id]
        if not moved:
            raise ToolFailed(f"They are in {place.name} already.")
        change = await ctx.use(Mailboxes).ready_move([head.id for head in moved], place.id)
        fact = f"{counted(len(moved), 'mail')} to {place.name}"
        return target_of(change, fact, f"{place.name} of {account.address or account.label}: {subjects(moved)}")

    return await ctx.target(ready)


async def to_mark(ctx: Ctx, mails: Sequence[str], mark: Mark) -> dict[str, Any]:
    """Make the marks ready and keep them."""

    async def ready() -> dict[str, Any]:
        heads = await heads_of(ctx, ids_of(mails))
        marks, unmarks = _MARKS[mark]
        change = await ctx.use(Mailboxes).ready_marks([head.id for head in heads], marks, unmarks)
        return target_of(change, f"{counted(len(heads), 'mail')} as {mark}", f"{mark}: {subjects(heads)}")

    return await ctx.target(ready)
