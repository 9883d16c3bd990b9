"""The ids by which mails of one conversation name each other (RFC 5322, 3.6.4): read, and written unbroken. Pure."""

import re
from collections.abc import Sequence
from email.headerregistry import HeaderRegistry, UnstructuredHeader
from email.policy import SMTP, Policy

ID_CHARACTERS = 400
IDS_MOST = 30
_ID = re.compile(rf"<[!-;=?-~]{{1,{ID_CHARACTERS}}}>")  # printable ASCII without blanks and angle brackets


class _Ids(UnstructuredHeader):
    """A line of ids, folded between them. The library would write a long one as an encoded word, which is no id."""

    def fold(self, *, policy: Policy) -> str:
        """Write each id on a line of its own."""
        name: str = self.name  # type: ignore[attr-defined]  # as `BaseHeader` has it
        return f"{name}: {f'{policy.linesep} '.join(ids_in(str(self)))}{policy.linesep}"


def _registry() -> HeaderRegistry:
    made = HeaderRegistry()
    for name in ("references", "in-reply-to"):
        made.map_to_type(name, _Ids)  # type: ignore[arg-type]  # any header of this shape
    return made


POLICY = SMTP.clone(header_factory=_registry())


def ids_in(text: str) -> tuple[str, ...]:
    """The ids that a header names, each once; what is none is passed over."""
    return tuple(dict.fromkeys(_ID.findall(text)))


def chain(references: Sequence[str], message_id: str) -> tuple[str, ...]:
    """Return what an answer names as References: the first mail, and the latest up to the one that it answers."""
    found = ids_in(" ".join([*references, message_id]))
    return found if len(found) <= IDS_MOST else (found[0], *found[1 - IDS_MOST :])
