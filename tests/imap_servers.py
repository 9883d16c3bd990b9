"""The real mail servers Dovecot, from packages that are unpacked and not installed, and pymap, from PyPI.

Both are programs apart. Dovecot runs without root, in a folder of its own, and takes mails by LMTP as from the world.
"""

import atexit
import grp
import imaplib
import os
import pwd
import shutil
import smtplib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.parser import BytesParser
from email.policy import default
from functools import cache
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.ports import port_for

PASSWORD = "tulip-quarry"
UNPACKED = Path(__file__).resolve().parents[1] / ".venv" / "debian" / "dovecot"
SPECIAL = ("Drafts", "Sent", "Junk", "Trash", "Archive")
CONFIG = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
libexec_dir = {unpacked}/usr/lib/dovecot
mail_plugin_dir = {unpacked}/usr/lib/dovecot/modules
import_environment = TZ LD_LIBRARY_PATH={unpacked}/usr/lib/dovecot
protocols = imap lmtp
listen = 127.0.0.1
ssl = {ssl}
{certificate}
disable_plaintext_auth = no
auth_mechanisms = plain login xoauth2 oauthbearer
auth_failure_delay = 0
auth_username_format = %Lu
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 0
mail_location = maildir:{folder}/mail/%n
mail_max_userip_connections = 60
maildir_copy_with_hardlinks = yes
postmaster_address = root@localhost
recipient_delimiter = +
lmtp_save_to_detail_mailbox = yes
{tokens}
passdb {{
  driver = static
  mechanisms = plain login
  args = password={password}
}}
userdb {{
  driver = static
  args = allow_all_users=yes uid={user} gid={group} home={folder}/mail/%n
}}
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
service lmtp {{
  user = {user}
  chroot =
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp_port}
  }}
}}
protocol lmtp {{
  lda_mailbox_autocreate = yes
}}
namespace inbox {{
  inbox = yes
  separator = /
{special}
}}
"""
TOKENS = """
passdb {{
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = {folder}/oauth2
}}
"""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ImapServer:
    """A running server for ann and, with Dovecot, for whoever logs in. `folder`: Dovecot's, where it keeps its mails.

    `by_lmtp`: mails come as from the world, not by APPEND; `tls_port`: 0 where it offers no TLS.
    """

    folder: Path
    by_lmtp: bool
    held: list[int] = field(default_factory=list)
    tls_port: int = 0
    lmtp_port: int = 0

    @property
    def port(self) -> int:
        """Its port, which stays its own."""
        if not self.held:
            self.held.append(port_for(self))
        return self.held[0]

    def login(self, person: str = "ann") -> imaplib.IMAP4:
        """A client of the standard library, as another mail program is; the caller logs it out."""
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=PATIENCE_S)
        client.login(person, PASSWORD)
        return client

    def deliver(self, mail: bytes | str, folder: str = "INBOX", person: str = "ann", flags: str = "") -> None:
        """A mail that comes, as its lines are written; into another folder, or with flags, it is put by APPEND."""
        data = mail if isinstance(mail, bytes) else mail.encode()
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        if self.by_lmtp and folder == "INBOX" and not flags:
            with smtplib.LMTP("127.0.0.1", self.lmtp_port, timeout=PATIENCE_S) as lmtp:
                refused = lmtp.sendmail("sender@example.org", [f"{person}@example.org"], data)
                assert not refused, refused
            return
        with self.login(person) as client:
            assert client.append(_quoted(folder), flags, "", data)[0] == "OK"

    def make(self, folder: str, person: str = "ann") -> None:
        """A new folder, its name as it travels."""
        with self.login(person) as client:
            assert client.create(_quoted(folder))[0] == "OK"

    def fill(self, count: int, person: str = "ann", *, first: int = 0) -> None:
        """Many short mails in the inbox, put where Dovecot finds them; it must not have been asked for them yet."""
        place = self.folder / "mail" / person
        for name in ("cur", "new", "tmp"):
            (place / name).mkdir(parents=True, exist_ok=True)
        for number in range(first, first + count):
            one = place / "cur" / f"{1_700_000_000 + number}.M{number}P1.many:2,S"
            one.write_bytes(many_mail(number))
            os.utime(one, (1_700_000_000 + number * 60,) * 2)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            for one in (place.parent, place, *place.rglob("*")):
                os.chown(one, nobody.pw_uid, nobody.pw_gid)

    def mails(self, folder: str = "INBOX", person: str = "ann") -> list[Message]:
        """Whatever lies in a folder, oldest first; looking changes nothing."""
        return [mail for mail, _ in self.flagged(folder, person)]

    def flagged(self, folder: str = "INBOX", person: str = "ann") -> list[tuple[Message, frozenset[str]]]:
        """The same with the flags of each, but for Recent."""
        with self.login(person) as client:
            state, _ = client.select(_quoted(folder), readonly=True)
            if state != "OK":
                return []
            _, found = client.uid("FETCH", "1:*", "(UID FLAGS BODY.PEEK[])")
        made: list[tuple[Message, frozenset[str]]] = []
        for part in found or ():
            if isinstance(part, tuple):
                flags = imaplib.ParseFlags(part[0])
                names = frozenset(flag.decode() for flag in flags if flag != rb"\Recent")
                made.append((message_from_bytes(part[1], policy=default), names))
        return made


def many_mail(number: int) -> bytes:
    """One of the many: who writes, about what and what it says differ by number."""
    name = ("ben", "karim", "mia", "ola")[number % 4]
    lines = [
        f"From: {name.title()} <{name}@example.org>", "To: Ann <ann@example.org>",
        f"Subject: Note {number} of the {('choir', 'school', 'garden')[number % 3]}",
        f"Message-ID: <many{number}@example.org>", "Date: Wed, 15 Nov 2023 10:00:00 +0000",
        "Content-Type: text/plain; charset=utf-8", "", f"This is text number {number}.", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode()


def mail(subject: str, text: str = "Hello.", *headers: str, sender: str = "Ben <ben@example.org>", id: str = "") -> str:
    """The lines of a plain mail. `headers`: more of them, or other ones of the same name instead."""
    given = [
        f"From: {sender}", "To: Ann <ann@example.org>", f"Subject: {subject}",
        f"Message-ID: <{id or subject.lower().replace(' ', '-')}@example.org>",
        "Date: Fri, 27 Nov 2026 10:00:00 +0100", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
    ]  # fmt: skip
    named = {one.partition(":")[0].lower() for one in headers}
    kept = [one for one in given if one.partition(":")[0].lower() not in named]
    return "\n".join([*kept, *headers, "", text, ""])


def parsed(data: bytes) -> Message:
    """A mail by the standard library, as other programs read it."""
    return BytesParser(policy=default).parsebytes(data)


@contextmanager
def dovecot(*, authority: tuple[Path, Path] | None = None, introspection: str = "") -> Iterator[ImapServer]:
    """Dovecot without root. `authority`: files of its certificate and key, for TLS and STARTTLS.

    `introspection`: the address that says whether a token of XOAUTH2 is good (`introspection_mode=post`).
    """
    if not (UNPACKED / "usr/sbin/dovecot").exists():
        pytest.skip("Dovecot is not here: `make debian`, as root on Debian, unpacks it")
    unpacked = _unpacked()
    made = Path(tempfile.mkdtemp(prefix="dove-"))
    made.chmod(0o755)  # what pytest makes, only its own user enters
    server = ImapServer(made, by_lmtp=True, tls_port=0, lmtp_port=0)
    lmtp, tls = ImapServer(made, by_lmtp=True), ImapServer(made, by_lmtp=True)  # each holds a port as long as it lives
    server = ImapServer(made, by_lmtp=True, tls_port=tls.port if authority else 0, lmtp_port=lmtp.port)
    user, group = ("nobody", "nogroup") if os.geteuid() == 0 else (_me(), _my_group())
    (made / "run").mkdir()
    (made / "run" / "modules").symlink_to(unpacked / "usr/lib/dovecot/modules")  # see `.ci/debian`
    certificate = f"ssl_cert = <{authority[0]}\nssl_key = <{authority[1]}" if authority else ""
    if introspection:
        (made / "oauth2").write_text(
            f"introspection_mode = post\nintrospection_url = {introspection}\nusername_attribute = username\n"
            "active_attribute = active\nactive_value = true\ntimeout_msecs = 20000\n"
        )
    special = "\n".join(
        f"  mailbox {name} {{\n    auto = subscribe\n    special_use = \\{name}\n  }}" for name in SPECIAL
    )
    config = made / "dovecot.conf"
    config.write_text(
        CONFIG.format(
            folder=made, unpacked=unpacked, user=user, group=group, password=PASSWORD, special=special,
            ssl="yes" if authority else "no", certificate=certificate, port=server.port, tls_port=server.tls_port,
            lmtp_port=server.lmtp_port, tokens=TOKENS.format(folder=made) if introspection else "",
        )
    )  # fmt: skip
    options: dict[str, object] = {"env": {**os.environ, "LD_LIBRARY_PATH": str(unpacked / "usr/lib/dovecot")}}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for one in (made, *made.rglob("*")):
            os.chown(one, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
        options |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    # `dovecot` alone would look for `doveconf` where it would be installed; so that begins, and goes over into it.
    program = [str(unpacked / "usr/bin/doveconf"), "-f", "service=master", "-c", str(config), "-p", "-e"]
    program += [str(unpacked / "usr/sbin/dovecot"), "-F", "-c", str(config)]
    try:
        with _running(program, made / "started", server.port, options):
            yield server
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def pymap(folder: Path) -> Iterator[ImapServer]:
    """pymap with ann alone, its mails in memory: another server than Dovecot, and one for where Dovecot is not."""
    folder.mkdir(parents=True, exist_ok=True)
    server = ImapServer(folder, by_lmtp=False)
    words = ["--host", "127.0.0.1", "--port", str(server.port), "--no-tls"]
    words += ["--no-service", "admin", "--no-service", "managesieve"]
    words += ["dict", "--demo-user", "ann", "--demo-password", PASSWORD]
    started = "import sys; from pymap.main import main; sys.exit(main())"
    with _running([sys.executable, "-W", "ignore", "-c", started, *words], folder / "log", server.port, {}):
        yield server


def encrypted(server: ImapServer, trusted: ssl.SSLContext) -> imaplib.IMAP4:
    """Dovecot by TLS from the first byte on."""
    return imaplib.IMAP4_SSL("127.0.0.1", server.tls_port, ssl_context=trusted, timeout=PATIENCE_S)


@contextmanager
def _running(argv: Sequence[str], log: Path, port: int, options: dict[str, object]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output, **options)  # type: ignore[call-overload]
        try:
            until = time.monotonic() + PATIENCE_S
            while True:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@cache
def _unpacked() -> Path:
    """Where Dovecot is read from: as root it runs as nobody, who may not enter each folder above a checkout."""
    if os.geteuid() != 0 or all(one.stat().st_mode & 0o001 for one in (UNPACKED, *UNPACKED.parents)):
        return UNPACKED
    copied = Path(tempfile.mkdtemp(prefix="dovecot-"))
    atexit.register(shutil.rmtree, copied, ignore_errors=True)
    copied.chmod(0o755)
    shutil.copytree(UNPACKED / "usr", copied / "usr", symlinks=True)
    return copied


def _quoted(folder: str) -> str:
    return '"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _my_group() -> str:

    return grp.getgrgid(os.getegid()).gr_name
