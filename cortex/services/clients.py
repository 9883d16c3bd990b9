"""The clients that tools can open, by type: files, git, the sandbox, web search. Used by `compose/turns.py`."""

from collections.abc import Callable
from typing import Any

from cortex.base import private
from cortex.base.log import LogBook
from cortex.base.settings import Settings
from cortex.integrations.files import Files, Root, roots_from
from cortex.integrations.git import Git
from cortex.integrations.sandbox import Sandbox
from cortex.integrations.search import WebSearch, web_search_from
from cortex.integrations.web import Web
from cortex.ports.documents import DocumentTexts
from cortex.ports.system import Logs
from cortex.services.accounts.accounts import Accounts
from cortex.services.content.reading import DocumentReading
from cortex.services.content.user_documents import UserDocuments
from cortex.storage.home import Home


def clients(
    settings: Settings, accounts: Accounts, reading: DocumentReading, sandbox: Sandbox, book: LogBook, *, is_boxed: bool
) -> dict[type[Any], Callable[[str], Any]]:
    """Return what tools can open for a user, by type. What cannot work here is left out: its tools are not configured.

    is_boxed: whether the sandbox works on this machine.
    """
    web, homes = Web(), reading.looks.homes
    roots = roots_from(settings.folders, (settings.home,))

    def files(user_id: str) -> Files:
        async def allowed() -> tuple[Root, ...]:
            return roots if (await accounts.user(user_id)).is_admin else ()

        own = homes.home_of(user_id).path / "files"
        private.make_folder(own)
        return Files(own, allowed)

    def documents(user_id: str) -> UserDocuments:
        return UserDocuments(db=reading.runtime.db, reading=reading, files=files(user_id), user_id=user_id)

    search = web_search_from(searxng_url=settings.searxng_url, brave_api_key=settings.brave_api_key, ddgs=settings.ddgs)
    found: dict[type[Any], Callable[[str], Any]] = {
        Home: homes.home_of,
        Files: files,
        DocumentTexts: documents,
        Logs: lambda _: book,
        Web: lambda _: web,
    }
    if search is not None:
        found[WebSearch] = lambda _: search
    if is_boxed:
        git = Git(sandbox)
        found |= {Sandbox: lambda _: sandbox, Git: lambda _: git}
    return found
