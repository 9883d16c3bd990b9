"""100,000 messages of one person in 1,000 chats: their pages, the search among them, a hello, a start, a backup."""

import time

from sqlalchemy import func, select

from cortex.storage.schema import MessageTable
from tests.bench.figure import Bench, Figure
from tests.bench.houses import House, house, looks
from tests.bench.processes import ask
from tests.e2e.caller import Caller
from tests.many_rows import multiply

CHATS, MESSAGES_A_CHAT = 1_000, 100
TABLES = frozenset({"conversations", "events", "turns", "messages", "plans", "rounds"})
PAGES = ("/c/new", "/chats", "/search?q=milk", "/usage", "/more", "/admin/health")


def measure(bench: Bench) -> list[Figure]:
    """A line for each page, for a hello, for memory, and for a start of one process."""
    return [figure for kind in bench.databases for figure in _measured(bench, kind)]


def _measured(bench: Bench, kind: str) -> list[Figure]:
    with house(bench, kind) as opened, Caller(opened.door) as ada:
        ada.set_up()
        _fill(bench, opened, ada)
        how = f"{opened.name}, {_count(opened):,} messages"
        found = [
            Figure(what=f"many messages, {path}", value=took_ms, unit="ms", how=how)
            for path, took_ms in looks(ada, PAGES).items()
        ]
        began_s, used_s = time.perf_counter(), opened.cpu_s()
        ask(ada, "hello")
        found += [
            Figure(what="many messages, a hello", value=(time.perf_counter() - began_s) * 1000, unit="ms", how=how),
            Figure(what="many messages, CPU of it", value=(opened.cpu_s() - used_s) * 1000, unit="ms", how=how),
            Figure(what="many messages, memory", value=opened.memory_mb(), unit="MB", how=how),
        ]
        if kind != "processes":
            began_s = time.perf_counter()
            opened.door.restart()
            took_s = time.perf_counter() - began_s
            found.append(Figure(what="many messages, end and start", value=took_s, unit="s", how=how))
    return found


def _fill(bench: Bench, opened: House, ada: Caller) -> None:
    """Let a talk that was held be there many times."""
    chat = ask(ada, "add milk to my shopping list")
    while True:
        has = _count(opened)
        if has >= min(MESSAGES_A_CHAT, bench.count(CHATS * MESSAGES_A_CHAT)):
            break
        ask(ada, "tell me who you are", chat)
    opened.fill(lambda connection: multiply(connection, max(1, bench.count(CHATS) - 1), only=TABLES))


def _count(opened: House) -> int:
    with opened.rows() as connection:
        return connection.execute(select(func.count()).select_from(MessageTable)).scalar_one()
