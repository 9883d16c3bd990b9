"""A daemon dies while it changes a mailbox for a person, and while a mail begins a job: each draft, move and run once.

Ahead of each of its writes, so also between what the server did and the record of it. Then the mailbox is as after
a life that was not cut, as another mail program sees it.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from cortex.base.turn import LOOP_ENDS
from tests.e2e.caller import Caller
from tests.e2e.crew import until
from tests.e2e.crowd import look
from tests.e2e.test_calendar_kill import Coming, MortalDaemon, ask
from tests.e2e.test_kill_sweep import Lines, Sweep, alike, knife_of, read, shown
from tests.imap_servers import PASSWORD, ImapServer, dovecot, mail
from tests.knife import Knife
from tests.scripted_server import Asked, ScriptedServer, Use, rule

PARTS, PARTS_OF_TURN = 5, 16
SCHOOL = "School <office@school.example>"
KARIM = "Karim <karim@example.org>"
ID = re.compile(r"\(#(\w+)\)")

pytestmark = pytest.mark.names_its_database("its rows are looked at while it is dead")


def which(asked: Asked) -> str:
    return str(re.findall(r"n[0-9a-f]\d\d", asked.user)[-1])


def it(asked: Asked) -> str:
    """The id of the mail, as the search told it."""
    return str(ID.findall(" ".join(asked.results))[0])


@dataclass(kw_only=True)
class Sorting(Sweep):
    """Mails that are found, answered by a draft, flagged and put away."""

    words: ClassVar[str] = "Find the offer {0}, draft an answer, flag it and put it into the archive."
    server: ImapServer
    sync: str

    def prepare(self, name: str) -> None:
        """Have the mail in the index."""
        self.server.deliver(mail(f"Offer {name}", sender=KARIM, id=f"offer-{name}"))
        self.person.post(self.sync)
        until(lambda: bool(self._rows("SELECT id FROM mails WHERE subject = :it", f"Offer {name}")))

    def is_over(self, turns: list[tuple[str, ...]]) -> bool:
        """Tell whether nothing is at work."""
        return bool(turns) and all(state in LOOP_ENDS for _, state in turns)

    def check(self, places: dict[str, str]) -> None:
        """Every turn is as the first one, which nobody cut; and so is the mailbox."""
        stories = look(self.daemon, list(places.values())).stories
        first, uncut = next(iter(places.items()))
        for name, place in places.items():
            assert [turn.state for turn in stories[place].turns] == ["done"], name
            for view in (shown, read):
                assert told(view(stories[place]), name) == told(view(stories[uncut]), first), name
        once = dict.fromkeys(places, 1)
        drafts = self.server.mails("Drafts")
        assert Counter(str(one["In-Reply-To"])[7:11] for one in drafts) == once
        assert Counter(str(one["To"]) for one in drafts) == {KARIM: len(places)}
        archived = self.server.flagged("Archive")
        assert Counter(str(one["Subject"])[6:] for one, _ in archived) == once
        assert {marks for _, marks in archived} == {frozenset({"\\Flagged"})}
        assert [str(one["Subject"]) for one in self.server.mails() if "Offer" in str(one["Subject"])] == []


def told(lines: Lines, name: str) -> Lines:
    """Without what differs from life to life, the id of the mail too."""
    ids = re.compile("|".join({*ID.findall(repr(lines)), "$^"}))
    return alike([tuple(ids.sub("it", word) for word in line) for line in lines], name)


@dataclass(kw_only=True)
class Trips(Coming):
    """Mails of the school, each of which begins a job."""

    server: ImapServer

    def put(self) -> str:
        """Have one more come."""
        title = f"Trip {self.count:03}"
        self.server.deliver(mail(title, sender=SCHOOL, id=f"trip-{self.count}"))
        return title

    def _ask(self) -> None:
        """Nobody asks: the server tells it, or the next life looks by itself."""

    def named(self, text: str) -> list[str]:
        """The mails that a run told of."""
        return re.findall(r"Trip \d+", text)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sorting, Trips]]:
    folder = tmp_path_factory.mktemp("kills")
    rules = rule(
        "^Find the offer",
        lambda asked: Use("mail_search", {"query": f"offer {which(asked)}"}),
        lambda asked: Use("mail_draft", {"text": f"Gladly, {which(asked)}.", "answers": it(asked)}),
        lambda asked: Use("mail_flag", {"mails": [it(asked)], "mark": "flagged"}),
        lambda asked: Use("mail_move", {"mails": [it(asked)], "folder": "Archive"}),
        "It is put away.",
    )
    with dovecot() as server, ScriptedServer(rules) as model:
        place = f"127.0.0.1:{server.port}"
        daemon = MortalDaemon(folder / "home", database_url="", mail_servers=place)
        daemon.start()
        try:
            with Caller(daemon) as ada:
                ada.set_up()
                form = {"provider": "openai", "model": "s", "base_url": model.base_url, "api_key": model.api_key}
                ada.post("/models", name="obedient", streams="on", tools="on", **form)
                login = {"address": "ann@example.org", "password": PASSWORD, "username": "ann"}
                ada.post("/mail", host="127.0.0.1", port=str(server.port), security="none", **login)
                until(lambda: "Up to date" in ada.get("/mail").text)
                ada.post("/jobs/new", name="School", kind="message", prompt="Now.", when="only when called")
                ((account,),) = ask(daemon, "SELECT id FROM mail_accounts")
                ((job,),) = ask(daemon, "SELECT id FROM jobs")
                ada.post(f"/jobs/{job}/mail", sender="school.example")
                sync, knife = f"/mail/{account}/sync", Knife(knife_of(daemon.home))
                sorting = Sorting(daemon=daemon, person=ada, knife=knife, server=server, sync=sync)
                yield sorting, Trips(daemon=daemon, person=ada, knife=knife, server=server, sync=sync)
                assert model.problems == []
        finally:
            daemon.close()


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.full) for part in range(1, PARTS))])
@pytest.mark.timeout(900)
def test_ahead_of_each_write_between_a_mail_and_the_run_that_it_begins(house: tuple[Sorting, Trips], part: int) -> None:
    _, trips = house
    writes = trips.come()
    assert writes > 4, "the knife sees what is written"
    for at in range(1 + part, writes + 1, PARTS):
        trips.come(dies_at=at)
    assert trips.deaths > 0
    trips.check()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_at_any_moment_of_a_mail_that_begins_a_run(house: tuple[Sorting, Trips]) -> None:
    _, trips = house
    chance = random.Random(7)  # noqa: S311 - moments of a test
    for _ in range(12):
        trips.come(after_s=chance.uniform(0.01, 1.5))
    trips.check()


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.full) for part in range(1, PARTS_OF_TURN))])
@pytest.mark.timeout(1800)
def test_ahead_of_each_write_of_a_turn_that_sorts_mail(house: tuple[Sorting, Trips], part: int) -> None:
    sorting, _ = house
    places = {f"n{part:x}00": sorting.turn(f"n{part:x}00")}
    writes, deaths = sorting.knife.writes, sorting.deaths
    for at in range(1 + part, writes + 1, PARTS_OF_TURN):
        name = f"n{part:x}{len(places):02}"
        places[name] = sorting.turn(name, at)
    assert sorting.deaths > deaths
    assert sorting.daemon.stop() == 0
    try:
        sorting.check(places)
    finally:
        sorting.daemon.start()
