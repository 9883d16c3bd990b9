"""The user's own mail: find, read, follow a conversation, lay down drafts, move, mark, save what is attached.

All of it is text from outside. Nothing here sends, and looking marks nothing as read. A change is made ready ahead of
the question and kept (`aim`, `Ctx.target`), so what was asked about is what is done, once.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import convert
from msgspec.structs import replace

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.zone import day_begins, day_ends
from cortex.integrations.files import Files, version_of
from cortex.ports.mail import Mailboxes, MailChange, MailsFound, MailWanted
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.mail_changes import Mark, to_draft, to_mark, to_move
from cortex.toolkit.mails import (
    NO_MAIL,
    accounts_of,
    folders_named,
    id_of,
    line,
    new_words,
    text_of,
    whole,
)
from cortex.toolkit.server_changes import make
from cortex.toolkit.spec import Output, Risk
from cortex.toolkit.stretch import stretch
from cortex.toolkit.words import counted

SUMMARY = "the user's mailbox: find, read, drafts"
NEEDS = ("Mailboxes",)
ROLES = {"orchestrator": ("mail",)}
TESTED = "Dovecot and pymap, real servers"
SHOWN = 20
READ_AT_ONCE = 5
SAVED = "mail"  # the folder of the user's files for what was attached
THREAD_CHARACTERS = 1_000
Only = Literal["", "unread", "flagged", "with files"]


@tool(
    words="Search the mail[ for {query}][ in {folder}]",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
)
async def mail_search(
    ctx: Ctx,
    query: str = "",
    since: date | None = None,
    until: date | None = None,
    folder: str = "",
    only: Only = "",
    before: str = "",
) -> Output:
    """Find mails in the user's mailbox, the newest first.

    Args:
        query: Words of subject and people, else of texts.
        since: First day.
        until: Last day.
        folder: Such as Sent.
        only: Which.
        before: Last id shown.
    """
    accounts = await accounts_of(ctx)
    folders = folders_named(accounts, folder) if folder else []
    is_all = not (folder or query)
    wanted = MailWanted(
        words=query,
        since=day_begins(since, ctx.user.time_zone),
        until=day_ends(until, ctx.user.time_zone),
        folder_id=folders[0].id if len(folders) == 1 else "",
        role="inbox" if is_all else folders[0].role if len(folders) > 1 else "",
        is_seen=False if only == "unread" else None,
        is_flagged=True if only == "flagged" else None,
        has_files=True if only == "with files" else None,
        most=SHOWN,
        before=id_of(before),
    )
    if len(folders) > 1 and not folders[0].role:
        raise ToolFailed(f"Several folders fit {folder!r}: {', '.join(one.name for one in folders[:12])}. Say which.")
    found = await _found(ctx, wanted)
    if query and not found.count:
        found = await _found(ctx, replace(wanted, in_text=True))
    names = {one.id: one.label for one in accounts if len(accounts) > 1}
    lines = [line(ctx, head, has_account=names.get(head.account_id, "")) for head in found.heads]
    if not lines:
        lines = ["No mail fits."]
    elif found.count > len(lines):
        lines.append(f"[{found.count} fit; the next with before={found.heads[-1].id}]")
    lines += [f"[{found.note}]"] if found.note else []
    return Output(text="\n".join(lines), words=counted(found.count, "mail"), is_tainted=True)


async def _found(ctx: Ctx, wanted: MailWanted) -> MailsFound:
    try:
        return await ctx.use(Mailboxes).search(wanted)
    except NotFound as error:
        raise ToolFailed(NO_MAIL.format(id=wanted.before)) from error


@tool(words="Read the mail {mail}", effect="read", reads_private=True, reads_untrusted=True)
async def mail_read(ctx: Ctx, mail: str, offset: int = 0) -> Output:
    """Read a mail.

    Args:
        mail: Its id.
        offset: Character to start at.
    """
    found = await text_of(ctx, id_of(mail))
    return Output(text=stretch(whole(ctx, found), offset, "mail_read"), is_tainted=True)


@tool(words="Read the conversation of the mail {mail}", effect="read", reads_private=True, reads_untrusted=True)
async def mail_thread(ctx: Ctx, mail: str) -> Output:
    """Read the conversation that a mail belongs to.

    Args:
        mail: Id of one of them.
    """
    try:
        heads = await ctx.use(Mailboxes).thread(id_of(mail))
    except NotFound as error:
        raise ToolFailed(NO_MAIL.format(id=mail)) from error
    last = {head.id for head in heads[-READ_AT_ONCE:]}
    texts, lines = await ctx.use(Mailboxes).read_all(list(last)), list[str]()
    for head in heads:
        lines.append(line(ctx, head))
        if head.id in texts:
            said = new_words(texts[head.id].text, THREAD_CHARACTERS)
            lines += [f"  {one}" for one in said.splitlines()]
        elif head.id in last:
            lines.append("  [It is not there any more.]")
    return Output(text=stretch("\n".join(lines), 0, "mail_read"), words=counted(len(heads), "mail"), is_tainted=True)


def _doubt(arguments: Mapping[str, Any]) -> Risk:
    """Tell how a draft weighs: whom it goes to may be a word from outside, but not those whom it answers."""
    return "medium" if arguments.get("to") or not arguments.get("answers") else "low"


async def _where_drafted(ctx: Ctx, **given: Any) -> str:
    return str((await to_draft(ctx, given))["aim"])


@tool(
    words="Lay down a draft[ to {to}][: {subject}]",
    idempotent=True,
    reads_private=True,
    risk_of=_doubt,
    aim=_where_drafted,
)
async def mail_draft(
    ctx: Ctx,
    text: str,
    to: str = "",
    subject: str = "",
    answers: str = "",
    to_all: bool = False,
) -> Output:
    """Lay a mail into the user's Drafts; it is not sent.

    Args:
        text: The mail, plain.
        to: Addresses or contacts; else whom it answers.
        subject: Its subject.
        answers: Id of the mail that it answers.
        to_all: Answer all who got it.
    """
    given = {
        "text": text, "to": to, "subject": subject, "answers": answers, "to_all": to_all,
    }  # fmt: skip
    target = await to_draft(ctx, given)
    said = await _written(ctx, target, "Laid down as a draft, not sent", "Remove the draft")
    return Output(text=said, is_tainted=bool(answers.strip()))  # subject and names are those of the mail


async def _where_moved(ctx: Ctx, mails: Sequence[str], folder: str) -> str:
    return str((await to_move(ctx, mails, folder))["aim"])


def _moves(arguments: Mapping[str, Any]) -> str:
    return f"Move {counted(len(arguments['mails']), 'mail')} to {arguments['folder']}"


@tool(words=_moves, risk="medium", idempotent=True, reads_private=True, aim=_where_moved)
async def mail_move(ctx: Ctx, mails: list[str], folder: str) -> str:
    """Move mails to a folder such as Archive or Trash.

    Args:
        mails: Their ids.
        folder: Its name.
    """
    return await _written(ctx, await to_move(ctx, mails, folder), "Moved", "Move them back")


async def _which_marked(ctx: Ctx, mails: Sequence[str], mark: Mark) -> str:
    return str((await to_mark(ctx, mails, mark))["aim"])


def _marks(arguments: Mapping[str, Any]) -> str:
    return f"Mark {counted(len(arguments['mails']), 'mail')} as {arguments['mark']}"


def _hides(arguments: Mapping[str, Any]) -> Risk:
    """Tell how a mark weighs: what counts as read is looked at by nobody any more."""
    return "medium" if arguments["mark"] == "read" else "low"


@tool(words=_marks, idempotent=True, reads_private=True, risk_of=_hides, aim=_which_marked)
async def mail_flag(ctx: Ctx, mails: list[str], mark: Mark) -> str:
    """Mark or flag mails.

    Args:
        mails: Their ids.
        mark: As what.
    """
    return await _written(ctx, await to_mark(ctx, mails, mark), "Marked", "Mark them as before")


async def _to_save(ctx: Ctx, mail: str, attachment: int, path: str) -> dict[str, Any]:
    """Return where the attachment goes, kept: a free name below the user's own files."""

    async def ready() -> dict[str, Any]:
        found = await text_of(ctx, id_of(mail))
        named = {one.number: one for one in found.files}
        if attachment not in named:
            there = ", ".join(f"{one.number} {one.name[:60]}" for one in found.files) or "none"
            raise ToolFailed(f"The mail has no attachment {attachment}. It has: {there}.", is_tainted=True)
        name = PurePosixPath(named[attachment].name.replace("\\", "/")).name.lstrip(".") or "attachment"
        wanted = path.strip() or f"{SAVED}/{''.join(sign if sign.isprintable() else '_' for sign in name)[-120:]}"
        return {"path": await _free(ctx, wanted)}

    return await ctx.target(ready)


async def _free(ctx: Ctx, wanted: str) -> str:
    """A path at which nothing is yet: the one that is wanted, else with a number."""
    files, place = ctx.use(Files), PurePosixPath(wanted)
    for number in range(1, 100):
        path = wanted if number == 1 else str(place.with_name(f"{place.stem} {number}{place.suffix}"))
        try:
            await files.stat(path)
        except NotFound:
            return path
    raise ToolFailed(f"There are a hundred files of that name. Say another path than {wanted!r}.")


async def _where_saved(ctx: Ctx, **given: Any) -> str:
    return str((await _to_save(ctx, **given))["path"])


@tool(
    words="Save attachment {attachment} of the mail {mail}[ as {path}]",
    risk="medium",
    idempotent=True,
    reads_private=True,
    needs=("Files",),
    aim=_where_saved,
)
async def mail_save(ctx: Ctx, mail: str, attachment: int = 1, path: str = "") -> Output:
    """Save a mail's attachment among the user's files.

    Args:
        mail: The mail's id.
        attachment: Its number.
        path: Such as bills/may.pdf.
    """
    target = str((await _to_save(ctx, mail, attachment, path))["path"])
    data = await ctx.use(Mailboxes).file(id_of(mail), attachment)
    files = ctx.use(Files)
    if not (ctx.is_again and await _is_there(files, target, data)):
        await files.write(target, data, expected="")
    ctx.leave_undo(target=target, before=None, expected=version_of(data), label="Remove the file")
    return Output(text=f"Saved as {target}. file_read reads it.", is_tainted=True)


async def _is_there(files: Files, path: str, data: bytes) -> bool:
    """Tell whether an earlier try wrote it."""
    try:
        return await files.read(path, limit_bytes=len(data) + 1) == data
    except NotFound:
        return False


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Have the mails as they were, or the saved file away. Conflict when it changed since."""
    if before is None:
        await ctx.use(Files).remove(target, expected=expected)
        return f"{target} is removed again."
    change = convert(before["written"], MailChange)
    again = await ctx.use(Mailboxes).put_back(change, expected)
    ctx.leave_redo(target=target, before=before, expected=again)
    return f"As it was before: {target}"


async def _written(ctx: Ctx, target: dict[str, Any], said: str, label: str) -> str:
    return await make(ctx, ctx.use(Mailboxes), MailChange, target, said, label)
