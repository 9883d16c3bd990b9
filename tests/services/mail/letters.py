"""The mails of the tests of whole turns: what lies in a mailbox before, and what lies there after."""

import asyncio
import imaplib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.header import decode_header, make_header
from email.message import EmailMessage

from cortex.ports.mail import MailWanted
from cortex.services.mail.accounts import MailLogin
from cortex.storage.mail import MailAccountsRepository
from tests.imap_servers import PASSWORD, ImapServer, mail
from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)  # Saturday, 13:00 in Berlin
KARIM, OLA, ADA = "Karim <karim@example.org>", "Ola <ola@example.org>", "ada@example.org"
BANK, SCHOOL, SHOP = "Bank <bank@example.org>", "School <office@school.example>", "Shop <news@shop.example>"


def plain(subject: str, text: str, sender: str, *headers: str, id: str = "") -> str:
    return mail(subject, text, f"To: Ada <{ADA}>", *headers, sender=sender, id=id)


def with_file(subject: str, sender: str, name: str, data: bytes) -> str:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"], made["Message-ID"] = sender, ADA, subject, f"<{len(name)}@example.org>"
    made.set_content("It is attached.")
    made.add_attachment(data, maintype="application", subtype="pdf", filename=name)
    return made.as_string()


ANSWER = ("In-Reply-To: <roof@example.org>", "References: <roof@example.org>")
ROOF2 = ("In-Reply-To: <sent@example.org>", "References: <roof@example.org> <sent@example.org>")
# key: folder, marks, days ago, the mail. The key is how requests name it.
THERE: Mapping[str, tuple[str, str, int, str | bytes]] = {
    "notice": ("INBOX", "\\Seen", 400, plain("Tax notice", "You owe 12 euros.", "Tax <tax@office.example>")),
    "roof": ("INBOX", "\\Seen", 9, plain("The roof", "The roof costs 900 euros.", KARIM, id="roof")),
    "sent": ("Sent", "\\Seen", 8, mail("Re: The roof", "Too much. 700?", f"To: {KARIM}", *ANSWER, sender=ADA,
                                       id="sent")),
    "roof2": ("INBOX", "", 7, plain("Re: The roof", "> Too much. 700?\n800 then.", KARIM, *ROOF2, id="roof2")),
    "bill": ("INBOX", "", 6, with_file("Invoice 2044", "Wires <wires@example.org>", "invoice.pdf", b"%PDF-1.4 bill")),
    "news": ("INBOX", "", 5, plain("Offers of the week", "Buy.", SHOP)),
    "news2": ("INBOX", "", 4, plain("Offers of the month", "Buy more.", SHOP)),
    "page": ("INBOX", "\\Flagged", 3, plain("Your statement", "<html><body><p>Balance: <b>12&nbsp;euros</b></p>"
             "<script>x()</script></body></html>", BANK, "Content-Type: text/html; charset=utf-8")),
    "school": ("INBOX", "", 2, plain("Trip on Friday", "The bus leaves at 7:40.", SCHOOL,
                                     f"To: Ada <{ADA}>, Ben <ben@example.org>", "Cc: Mia <mia@example.org>")),
    "ola": ("INBOX", "", 1, "From: Ola <ola@example.org>\nTo: ada@example.org\nMessage-ID: <ola@example.org>\n"
            "Subject: =?iso-8859-1?q?Gr=FC=DFe_aus_K=F6ln?=\nContent-Type: text/plain; charset=iso-8859-1\n"
            "Content-Transfer-Encoding: 8bit\n\nSch\u00f6ne Gr\u00fc\u00dfe vom Rhein.\n".encode("latin-1")),
    "junk": ("Junk", "", 1, plain("You won", "Click.", "Lottery <win@lottery.example>")),
}  # fmt: skip
SUBJECTS = {
    "notice": "Tax notice", "roof": "The roof", "sent": "Re: The roof", "roof2": "Re: The roof",
    "bill": "Invoice 2044", "news": "Offers of the week", "news2": "Offers of the month", "page": "Your statement",
    "school": "Trip on Friday", "ola": "Grüße aus Köln", "junk": "You won",
}  # fmt: skip
FOLDERS = ("INBOX", "Sent", "Drafts", "Archive", "Junk", "Trash", "Work/Bills")


def fill(server: ImapServer, person: str) -> None:
    """Lay all of it into this person's mailbox."""
    with server.login(person) as client:
        client.create('"Work/Bills"')
        for folder, marks, days, text in THERE.values():
            data = text if isinstance(text, bytes) else text.encode()
            at = imaplib.Time2Internaldate(NOW - timedelta(days=days))
            lines = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
            assert client.append(folder, marks, at, lines)[0] == "OK"


def stands(server: ImapServer, person: str) -> list[str]:
    """Every mail in every folder, with its marks: as another mail program sees it."""
    found = []
    with server.login(person) as client:
        for folder in FOLDERS:
            if client.select(f'"{folder}"', readonly=True)[0] != "OK":
                continue
            _, parts = client.uid("FETCH", "1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
            for part in parts or ():
                if isinstance(part, tuple):
                    marks = {flag.decode() for flag in imaplib.ParseFlags(part[0])} - {r"\Recent"}
                    subject = _subject(part[1])
                    found.append(" ".join([f"{folder}:", subject, *sorted(marks)]))
    return sorted(found)


def _subject(data: bytes) -> str:
    return str(make_header(decode_header(data.decode("latin-1").partition(":")[2].strip())))


async def connect(house: LivingHouse, server: ImapServer, person: str) -> None:
    """Connect the mailbox as the admin's, with Junk read too, and wait until all of it is in the index."""
    accounts = house.cortex.mail_accounts
    login = MailLogin(
        address=ADA, host="127.0.0.1", port=server.port, security="none", username=person, password=PASSWORD
    )
    await accounts.add(house.admin, login)
    ((account, folders),) = await accounts.list(house.admin)
    await accounts.set_folders(house.admin, account.id, [one.id for one in folders])
    await sync(house)


async def sync(house: LivingHouse) -> None:
    """Have the index brought up to date now, and wait until all of it is there."""
    rows = house.rows(MailAccountsRepository)
    (account,) = await rows.accounts()
    async with asyncio.timeout(PATIENCE_S):
        await house.cortex.mail_watch.tend(house.admin.id, account.id, waits=False)
        while not all(one.read_at for one in await rows.folders() if one.is_read):  # another tends it just now
            await house.cortex.mail_watch.tend(house.admin.id, account.id, waits=False)
    assert not [one.failure for one in await rows.accounts() if one.failure]


async def ids(house: LivingHouse) -> dict[str, str]:
    """The ids of the mails by their keys."""
    found = await house.cortex.mailboxes_of(house.admin.id).search(MailWanted(most=50))
    named = {(one.folder.role or one.folder.name, one.subject): one.id for one in found.heads}
    roles = {"INBOX": "inbox", "Sent": "sent", "Junk": "junk"}
    return {key: named[roles[THERE[key][0]], subject] for key, subject in SUBJECTS.items()}
