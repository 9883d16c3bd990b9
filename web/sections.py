"""The sections of the account: their list, what they have in common, how one is shown and saved."""

from fastapi.responses import Response
from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import Conflict, UserError
from web.render import Context, described, wants_fragment
from web.visit import Visit

HERE = "/account"
ROWS = 8  # of a list within a section, which stays as high as a window


class Section(Struct, frozen=True):
    """A line of the list: the last part of its address, an icon, its words, and what is there."""

    name: str
    icon: str
    title: str
    about: str


SECTIONS = (
    Section("you", "user", "You", "Who you are, your time zone"),
    Section("look", "theme", "Look", "Theme, size, the engine"),
    Section("chats", "chat", "Chats", "Role, tools, how Cortex talks"),
    Section("notifications", "bell", "Notifications", "Phone, e-mail, quiet hours"),
    Section("messengers", "chat", "Messengers", "By Telegram or Matrix"),
    Section("sign-in", "lock", "Sign-in", "Password, logins"),
    Section("keys", "key", "Keys & apps", "Tokens, own models, permissions"),
    Section("data", "out", "Your data", "Import, export, delete"),
)


class SectionContext(Context, frozen=True, kw_only=True):
    """Common to every section. `error_field` names the field that was refused, "" for all of its form."""

    sections: tuple[Section, ...] = described("the sections there are", default=SECTIONS)
    section: str = described("the last part of the section's address")
    is_list: bool = described("whether a phone shows the list of the sections instead", default=False)
    is_saved: bool = described("whether to say that it was saved just now", default=False)


async def shown(visit: Visit, context: SectionContext, *, refused: UserError | Conflict | None = None) -> Response:
    """The section's page, or the section alone for the script."""
    template = f"account_{context.section.replace('-', '_')}.html"
    return await visit.show(template, context, block="section", refused=refused)


async def saved(visit: Visit, context: SectionContext) -> Response:
    """Say that it was saved: in the section where the script asks, else on its page."""
    if wants_fragment(visit.request):
        return await shown(visit, replace(context, is_saved=True))
    return visit.redirect(f"{HERE}/{context.section}", "Saved.")
