"""Opens what a tool asks for by its type: a repository bound to the user, or a client. Implements the `Scope` port."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from cortex.base.errors import ToolFailed
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.calls import CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.documents import DocumentsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.repository import Repository
from cortex.storage.search import SearchRepository
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import TurnsRepository

T = TypeVar("T")
Opening = Callable[[str], Any]

REPOSITORIES: tuple[type[Repository], ...] = (
    ApprovalsRepository,
    CallsRepository,
    ConversationsRepository,
    DocumentsRepository,
    MessagesRepository,
    PreferencesRepository,
    SearchRepository,
    TasksRepository,
    TurnsRepository,
)


def names_of(clients: Iterable[type[Any]]) -> frozenset[str]:
    """Names of what can be opened, a repository by its noun: the registry's `needs` are checked against these."""
    return frozenset(kind.__name__.removesuffix("Repository") for kind in (*REPOSITORIES, *clients))


class ToolScope:
    """`clients`: type -> function of the user's id."""

    def __init__(self, db: Database, clients: Mapping[type[Any], Opening]) -> None:
        self._db = db
        self._clients = clients

    def provide(self, kind: type[T], user_id: str) -> T:
        """The repository or client, bound to the user; ToolFailed for a kind that nobody wired."""
        if kind in self._clients:
            return cast("T", self._clients[kind](user_id))
        if kind in REPOSITORIES and issubclass(kind, Repository):
            return cast("T", self._db.repository(kind, user_id))
        raise ToolFailed(f"{kind.__name__} is not set up on this server.")
