"""Mail of people, on servers that they name: accounts, folders, and an index of heads. Columns, keys and indexes only.

No text of a mail is kept here.
"""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class MailAccountTable(Table):
    """A mailbox of one person. `security`: tls, starttls or none; `way`: password, google or microsoft."""

    __tablename__ = "mail_accounts"
    __table_args__ = (Index("ix_mail_accounts_next_at", "next_at"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    address: Mapped[str]
    host: Mapped[str]
    port: Mapped[int]
    security: Mapped[str]
    username: Mapped[str]
    way: Mapped[str]
    created_at: Mapped[datetime]
    next_at: Mapped[datetime]
    worked_at: Mapped[datetime | None]
    failure: Mapped[str] = mapped_column(default="")
    failures: Mapped[int] = mapped_column(default=0)


class MailFolderTable(Table):
    """A folder of an account. `path`: as its server names it; `lacking`: how many mails are still to be read.

    `uidvalidity`: of the count by which its mails are known, 0 until it was read; `state`: by which it is told whether
    anything changed; `read_at`: when its first mails were all in, before which none of them is news.
    """

    __tablename__ = "mail_folders"
    __table_args__ = (UniqueConstraint("account_id", "path"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    account_id: Mapped[str] = mapped_column(ForeignKey("mail_accounts.id", ondelete="CASCADE"))
    path: Mapped[str]
    name: Mapped[str]
    role: Mapped[str] = mapped_column(default="")
    is_read: Mapped[bool]
    uidvalidity: Mapped[int] = mapped_column(BigInteger, default=0)
    state: Mapped[str] = mapped_column(default="")
    lacking: Mapped[int] = mapped_column(default=0)
    read_at: Mapped[datetime | None]


class MailTable(Table):
    """The head of a mail. `words`: what it is found by, folded; `thread`: the same for those of one conversation."""

    __tablename__ = "mails"
    __table_args__ = (
        UniqueConstraint("folder_id", "uid"),
        Index("ix_mails_owner_id_at", "owner_id", "at"),
        Index("ix_mails_owner_id_thread", "owner_id", "thread"),
        Index("ix_mails_owner_id_message_id", "owner_id", "message_id"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    folder_id: Mapped[str] = mapped_column(ForeignKey("mail_folders.id", ondelete="CASCADE"))
    uid: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime]
    sender: Mapped[str]
    sender_name: Mapped[str]
    recipients: Mapped[str]
    subject: Mapped[str]
    message_id: Mapped[str]
    thread: Mapped[str]
    words: Mapped[str]
    size: Mapped[int] = mapped_column(BigInteger)
    is_seen: Mapped[bool]
    is_flagged: Mapped[bool]
    is_answered: Mapped[bool]
    is_draft: Mapped[bool]
    has_files: Mapped[bool]


class MailTriggerTable(Table):
    """The mails that begin a job: those in which all that is said here holds. `since`: earlier ones begin nothing."""

    __tablename__ = "mail_triggers"
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[str] = owner()
    account_id: Mapped[str] = mapped_column(default="")
    sender: Mapped[str] = mapped_column(default="")
    subject: Mapped[str] = mapped_column(default="")
    words: Mapped[str] = mapped_column(default="")
    since: Mapped[datetime]


class MailNewsTable(Table):
    """A mail that came and that nobody has looked at yet for the jobs that it may begin."""

    __tablename__ = "mail_news"
    mail_id: Mapped[str] = mapped_column(ForeignKey("mails.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[str] = owner()
