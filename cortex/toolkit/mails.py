"""Mails as a model reads them, and the folder, the account and the mails that a call's words mean."""

from collections.abc import Sequence

from cortex.base.contact import mail_address
from cortex.base.errors import NotFound, ToolFailed
from cortex.base.zone import moment
from cortex.ports.mail import FolderRole, MailAccount, Mailboxes, MailFolder, MailHead, MailPerson, MailText
from cortex.toolkit.contacts import address_of
from cortex.toolkit.context import Ctx
from cortex.toolkit.words import counted, one_line

NO_ACCOUNT = "No mail account is connected. The user connects one on the page Mail accounts."
NO_MAIL = "No mail has the id {id!r}: it may have been moved or removed. mail_search shows what there is."
RECIPIENTS = 20
MAILS_MOST = 100
NAME_CHARACTERS = 60
SUBJECT_CHARACTERS = 120
SHOWN = 5
# How people call the folders that mail servers name as they like.
_ROLES: dict[FolderRole, tuple[str, ...]] = {
    "inbox": ("inbox",),
    "drafts": ("drafts", "draft"),
    "sent": ("sent", "sent mail"),
    "archive": ("archive",),
    "junk": ("junk", "spam"),
    "trash": ("trash", "bin", "deleted"),
}


async def accounts_of(ctx: Ctx) -> Sequence[MailAccount]:
    """The user's accounts; ToolFailed where there is none."""
    found = await ctx.use(Mailboxes).accounts()
    if not found:
        raise ToolFailed(NO_ACCOUNT)
    return found


def folders_named(accounts: Sequence[MailAccount], wanted: str) -> list[MailFolder]:
    """The folders that a name means, by the part that they play first; ToolFailed names what there is."""
    key = wanted.strip().strip("/").casefold()
    every = [folder for account in accounts for folder in account.folders]
    ways = (
        [one for one in every if one.role and key in _ROLES[one.role]],
        [one for one in every if one.name.casefold() == key],
        [one for one in every if one.name.casefold().rpartition("/")[2] == key],
        [one for one in every if key in one.name.casefold()],
    )
    found = next((one for one in ways if one), []) if key else []
    if not found:
        names = ", ".join(dict.fromkeys(one.name for one in every))
        raise ToolFailed(f"There is no folder {wanted!r}. There are: {names[:1_500]}.")
    return found


def folder_in(account: MailAccount, wanted: str) -> MailFolder:
    """The one folder of this account that a name means; ToolFailed where several fit."""
    found = folders_named([account], wanted)
    if len(found) > 1:
        raise ToolFailed(f"Several folders fit {wanted!r}: {', '.join(one.name for one in found[:12])}. Say which.")
    return found[0]


def ids_of(mails: Sequence[str]) -> list[str]:
    """The ids as the port takes them, each once; ToolFailed for none, and for too many."""
    found = list(dict.fromkeys(id_of(one) for one in mails))
    if not 0 < len(found) <= MAILS_MOST:
        raise ToolFailed(f"Name 1 to {MAILS_MOST} mails by their ids.")
    return found


def id_of(mail: str) -> str:
    """The id as the port takes it."""
    return mail.strip().removeprefix("#")


async def heads_of(ctx: Ctx, ids: Sequence[str]) -> list[MailHead]:
    """These mails, which are of one account; ToolFailed where one is not there."""
    return one_account([await head_of(ctx, id) for id in ids])


async def head_of(ctx: Ctx, id: str) -> MailHead:
    """One mail; ToolFailed where it is not there."""
    try:
        return await ctx.use(Mailboxes).head(id)
    except NotFound as error:
        raise ToolFailed(NO_MAIL.format(id=id)) from error


async def text_of(ctx: Ctx, id: str) -> MailText:
    """The whole of a mail; ToolFailed where it is not there."""
    try:
        return await ctx.use(Mailboxes).read(id)
    except NotFound as error:
        raise ToolFailed(NO_MAIL.format(id=id)) from error


def one_account(heads: list[MailHead]) -> list[MailHead]:
    """The mails as they are; ToolFailed where they are of several accounts."""
    if len({head.account_id for head in heads}) > 1:
        raise ToolFailed("These mails are of several accounts. Call once for each account.")
    return heads


async def people_of(ctx: Ctx, text: str) -> list[MailPerson]:
    """The addresses and the contacts' names with commas between, each once; ToolFailed for what is neither."""
    found: dict[str, MailPerson] = {}
    for word in filter(None, (part.strip() for part in text.replace(";", ",").split(","))):
        name, _, rest = word.rpartition("<")
        try:
            address = mail_address(rest.rstrip(">") if name else await address_of(ctx, word) or word)
        except ValueError as error:
            raise ToolFailed(f"{word[:80]!r} {error}. Ask the user for the address.") from error
        person = MailPerson(address=address, name=name.strip().strip('"')[:NAME_CHARACTERS])
        found.setdefault(address.casefold(), person)
    if len(found) > RECIPIENTS:
        raise ToolFailed(f"A draft goes to {RECIPIENTS} addresses at most.")
    return list(found.values())


def who(person: MailPerson) -> str:
    """Return who it is: the name that the mail gives, and the address, which is what counts."""
    name = one_line(person.name)[:NAME_CHARACTERS]
    return f"{name} <{person.address}>" if name and name != person.address else person.address


def line(ctx: Ctx, head: MailHead, *, has_account: str = "") -> str:
    """One line of a list. `has_account`: the account's name, where there are several."""
    people = f"to {', '.join(who(one) for one in head.to[:2])}" if _is_own(head) else who(head.sender)
    marks = [
        "" if head.is_seen or _is_own(head) else "unread",
        "flagged" if head.is_flagged else "",
        "answered" if head.is_answered else "",
        "with files" if head.has_files else "",
        head.folder.name if head.folder.role != "inbox" else "",
        has_account,
    ]
    said = f"{moment(head.at, ctx.user.time_zone)} {people}: {subject_of(head)}"
    return f"- {'; '.join([said, *filter(None, marks)])} (#{head.id})"


def subject_of(head: MailHead) -> str:
    """Return its subject, in a line."""
    words = one_line(head.subject)
    return words if len(words) <= SUBJECT_CHARACTERS else f"{words[:SUBJECT_CHARACTERS]}..." if words else "No subject"


def subjects(heads: Sequence[MailHead]) -> str:
    """Return which mails they are, for the person who is asked."""
    named = [f"“{subject_of(head)}” from {who(head.sender)}" for head in heads[:SHOWN]]
    more = len(heads) - len(named)
    return ", ".join([*named, *([f"{counted(more, 'more mail')}"] if more > 0 else [])])


def whole(ctx: Ctx, mail: MailText) -> str:
    """Return what a mail says, with who wrote it and what is attached."""
    head = mail.head
    lines = [
        f"From: {who(head.sender)}",
        f"To: {', '.join(who(one) for one in head.to[:RECIPIENTS])}" if head.to else "",
        f"Cc: {', '.join(who(one) for one in mail.cc[:RECIPIENTS])}" if mail.cc else "",
        f"Date: {moment(head.at, ctx.user.time_zone)}",
        f"Subject: {one_line(head.subject)}",
        f"Folder: {head.folder.name}" if head.folder.role != "inbox" else "",
        *(
            f"Attachment {one.number}: {one_line(one.name)[:NAME_CHARACTERS]} ({one.media_type}, {_size(one.size)})"
            for one in mail.files[:RECIPIENTS]
        ),
        f"[{mail.note}]" if mail.note else "",
    ]
    return "\n".join([*filter(None, lines), "", mail.text.strip() or "(no text)"])


def new_words(text: str, most: int) -> str:
    """Return what this mail adds to its conversation: without the lines that it quotes, and not more than so much."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(">")]
    said = "\n".join(lines).strip()
    return said if len(said) <= most else f"{said[:most]}..."


def _is_own(head: MailHead) -> bool:
    return head.folder.role in ("sent", "drafts")


def _size(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{max(size, 1) / 1_000:.0f} kB"
