"""A daemon dies while it takes in what a calendar server says and runs the job that stands beside it: each date once.

Ahead of each of its writes, and at any moment. Then the copy is as the server, and each appointment ran once.
"""

import logging
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.e2e.caller import Caller
from tests.e2e.crew import until
from tests.e2e.daemon import Daemon
from tests.e2e.test_kill_sweep import Mortal, knife_of
from tests.knife import NEVER, Knife
from tests.patience import PATIENCE_S

PARTS = 4
WHEN = "at the start of each appointment named due"
FIRST = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=2)

log = logging.getLogger(__name__)


pytestmark = pytest.mark.names_its_database("its rows are looked at while it is dead")


class MortalDaemon(Daemon):
    starts = Mortal


def ask(daemon: Daemon, question: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that answer it; or change them."""
    with closing(sqlite3.connect(daemon.home / "cortex.db", timeout=PATIENCE_S)) as rows, rows:
        return rows.execute(question, values).fetchall()


@dataclass(kw_only=True)
class Coming:
    """Things that come one after the other from a server, each of which begins a job, to a daemon that dies meanwhile.

    `sync`: the address that has the server asked.
    """

    daemon: Daemon
    person: Caller
    knife: Knife
    sync: str
    count: int = 0
    deaths: int = 0
    texts: list[str] = field(default_factory=list)

    def come(self, *, dies_at: int = NEVER, after_s: float = 0.0) -> int:
        """One more; how many writes it took. dies_at: ahead of which write, after_s: how long after it was asked."""
        self.count += 1
        title = self.put()
        self.texts.append(title)
        self.knife.arm(dies_at)
        self._ask()
        if after_s:
            time.sleep(after_s)
            self.daemon.kill9()
        until(lambda: self._is_over(title))
        is_dying = self.knife.disarm()
        if is_dying and self.daemon.has_ended:
            self._rise()
        return self.knife.writes

    def put(self) -> str:
        """Have one more there, of this count; its title."""
        raise NotImplementedError

    def _ask(self) -> None:
        try:
            self.person.post(self.sync)
        except httpx.TransportError:
            self._rise()
            self._ask()

    def _is_over(self, title: str) -> bool:
        if self.daemon.has_ended:
            self._rise()
            self._ask()
        return any(title in text for text in self.told())

    def _rise(self) -> None:
        """Another life, which is asked anew: what a dead one had taken to ask is left alone for ten minutes."""
        self.deaths += 1
        self.knife.disarm()
        self.daemon.start()

    def told(self) -> list[str]:
        return [str(text) for (text,) in ask(self.daemon, "SELECT text FROM notices WHERE kind = 'message'")]

    def check(self) -> None:
        """Every one ran once and was told once."""
        until(lambda: ask(self.daemon, "SELECT id FROM slots WHERE state IN ('planned', 'running')") == [])
        slots = ask(self.daemon, "SELECT state, count(*) FROM slots GROUP BY state")
        assert slots == [("done", self.count)]
        assert sorted(title for text in self.told() for title in self.named(text)) == sorted(self.texts)
        log.info("%d deaths over %d that came", self.deaths, self.count)

    def named(self, text: str) -> list[str]:
        """The titles that a run told of."""
        raise NotImplementedError


@dataclass(kw_only=True)
class Round(Coming):
    """Appointments, each at a minute of its own."""

    server: DavServer
    url: str

    def put(self) -> str:
        """Have one more there."""
        at, title = FIRST + timedelta(minutes=self.count), f"Due {self.count}"
        self.server.put(self.url, f"n{self.count}", *event(f"n{self.count}", title, f"DTSTART:{at:%Y%m%dT%H%M%SZ}"))
        return title

    def named(self, text: str) -> list[str]:
        """The appointments that a run told of."""
        return [line.partition(";")[0] for line in text.splitlines()[1:]]

    def check(self) -> None:
        """Every one ran once and was told once, and the copy holds all of them once."""
        super().check()
        titles = [str(title) for (title,) in ask(self.daemon, "SELECT title FROM appointments")]
        assert sorted(titles) == sorted(self.texts)


@pytest.fixture(scope="module")
def round_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Round]:
    folder = tmp_path_factory.mktemp("kills")
    with radicale(folder / "dav") as server:
        daemon = MortalDaemon(folder / "home", database_url="", calendar_servers=server.place)
        url = server.make("Home")
        daemon.start()
        try:
            with Caller(daemon) as ada:
                ada.set_up()
                ada.post("/calendar/accounts/server", address=server.base, username="ann", password=PASSWORD)
                form = {"name": "Due", "kind": "message", "prompt": "Now.", "when": WHEN, "time_zone": "UTC"}
                ada.post("/jobs/new", **form, fire_within_s="86400", overlap="queue")
                # it was made before all of them
                ask(daemon, "UPDATE jobs SET updated_at = ?", f"{FIRST - timedelta(hours=1):%Y-%m-%d %H:%M:%S.000000}")
                ((account,),) = ask(daemon, "SELECT id FROM calendar_accounts")
                yield Round(
                    daemon=daemon,
                    person=ada,
                    server=server,
                    url=url,
                    knife=Knife(knife_of(daemon.home)),
                    sync=f"/calendar/accounts/{account}/sync",
                )
        finally:
            daemon.close()


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.full) for part in range(1, PARTS))])
@pytest.mark.timeout(900)
def test_ahead_of_each_write_between_what_a_server_says_and_the_run_of_a_job(round_: Round, part: int) -> None:
    writes = round_.come()
    assert writes > 4, "the knife sees what is written"
    for at in range(1 + part, writes + 1, PARTS):
        round_.come(dies_at=at)
    assert round_.deaths > 0
    round_.check()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_at_any_moment(round_: Round) -> None:
    chance = random.Random(5)  # noqa: S311 - moments of a test
    for _ in range(12):
        round_.come(after_s=chance.uniform(0.01, 2.0))
    round_.check()
