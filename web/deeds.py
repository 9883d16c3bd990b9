"""What a person can have done from the palette (Ctrl K) and the search page, a line a deed.

A deed leads to the page where it is done, or posts a form. Pages themselves are found by their `NAV`: none stands here.
"""

from collections.abc import Mapping

from msgspec import Struct

from cortex.base.user import User


class Deed(Struct, frozen=True, kw_only=True):
    """Something to do. `also`: other words by which people look for it; `keys`: of the keyboard, separated by blanks.

    posts: the fields of the form that is sent to `href`; None where that is a page. with_engine: only for whoever has
    the engine shown, or has not.
    """

    title: str
    href: str
    icon: str
    about: str = ""
    also: str = ""
    keys: str = ""
    posts: Mapping[str, str] | None = None
    is_admin_only: bool = False
    with_engine: bool | None = None


DEEDS = (
    Deed(title="New chat", href="/c/new", icon="plus", also="ask write message talk", keys="n"),
    Deed(
        title="Temporary chat",
        href="/c/new?temporary=1",
        icon="plus",
        about="no list, no search, erased when it ends",
        also="new private incognito secret",
    ),
    Deed(title="Remind me …", href="/reminders", icon="bell", also="new reminder alarm set", keys="g r"),
    Deed(title="Add a task", href="/tasks", icon="task", also="new to do todo shopping list", keys="g t"),
    Deed(
        title="Plan a job",
        href="/jobs/new",
        icon="repeat",
        about="at a time, again and again",
        also="new schedule every day week cron automation",
    ),
    Deed(title="Add an appointment", href="/calendar/new", icon="calendar", also="new event meeting date calendar"),
    Deed(
        title="Connect a calendar",
        href="/calendar/accounts",
        icon="plug",
        about="Nextcloud, iCloud, an ICS address",
        also="caldav carddav google account contacts address book",
    ),
    Deed(title="Add a contact", href="/contacts/new", icon="people", also="new person address book phone number"),
    Deed(title="Write a note", href="/notes", icon="note", also="new add", keys="g n"),
    Deed(title="Add a file", href="/files", icon="folder", also="upload new document photo picture"),
    Deed(
        title="Stop everything",
        href="/stop-all",
        icon="halt",
        about="answers, jobs and agents",
        also="halt end emergency",
    ),
    Deed(
        title="Change how Cortex looks",
        href="/account/look",
        icon="gear",
        about="theme, density, keys",
        also="dark light mode colours style",
    ),
    Deed(
        title="Show the engine",
        href="/account/engine",
        icon="gear",
        about="tools, tokens, rounds and price under answers",
        also="figures numbers details costs on",
        posts={"on": "1"},
        with_engine=False,
    ),
    Deed(
        title="Hide the engine",
        href="/account/engine",
        icon="gear",
        about="tools, tokens, rounds and price under answers",
        also="figures numbers details costs off",
        posts={"on": ""},
        with_engine=True,
    ),
    Deed(title="Change your password", href="/account/sign-in", icon="user", also="new login security"),
    Deed(title="Bring chats here", href="/account/import", icon="out", about="from another assistant", also="import"),
    Deed(title="Download all that is yours", href="/account/everything", icon="out", also="export data backup"),
    Deed(title="Connect a model", href="/models/connect", icon="model", also="add new AI key server ollama"),
    Deed(title="Invite somebody", href="/admin/users", icon="user", also="add new person user", is_admin_only=True),
    Deed(title="Back up now", href="/admin/backups", icon="down", also="backup save copy", is_admin_only=True),
    Deed(title="Keyboard shortcuts", href="/shortcuts", icon="log", also="keys help", keys="?"),
    Deed(title="Log out", href="/logout", icon="leave", also="sign end session", posts={}),
)


def deeds_of(user: User, *, has_engine: bool) -> list[Deed]:
    """Return those that this person may do, in order. has_engine: whether the engine is shown to them."""
    may = [deed for deed in DEEDS if user.is_admin or not deed.is_admin_only]
    return [deed for deed in may if deed.with_engine in (None, has_engine)]
