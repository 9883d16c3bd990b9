"""Text of a kept mail (EML): who, when, about what, the text, and the names of what was attached. Nothing is opened."""

from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.documents.pages import Pages
from cortex.integrations.documents.plain import decoded, read_html

HEADERS = ("From", "To", "Cc", "Date", "Subject")
HEADER_CHARACTERS = 500
ATTACHMENTS_MOST = 100


def read(data: bytes, pages: Pages) -> None:
    """Put the mail into `pages`; UnreadableError where there is none."""
    message = BytesParser(EmailMessage, policy=policy.default).parsebytes(data)
    lines = [f"{name}: {str(message[name])[:HEADER_CHARACTERS]}" for name in HEADERS if message[name]]
    if not lines:
        raise UnreadableError("This is not a mail, or it is damaged.")
    pages.heading(str(message["Subject"] or "Mail"), 1, is_shown=False)
    pages.text("\n".join(lines))
    body = message.get_body(("plain", "html"))
    if body is not None:
        content = body.get_payload(decode=True)
        text = decoded(content if isinstance(content, bytes) else b"", body.get_content_charset() or "")
        if body.get_content_type() == "text/html":
            read_html(text, pages)
        else:
            for paragraph in text.replace("\r\n", "\n").split("\n\n"):
                pages.text(paragraph)
    attached = [_name(part) for part, _ in zip(message.iter_attachments(), range(ATTACHMENTS_MOST), strict=False)]
    if attached:
        pages.text("Attached, not read: " + ", ".join(attached))


def _name(part: EmailMessage) -> str:
    return (part.get_filename() or part.get_content_type())[:HEADER_CHARACTERS]
