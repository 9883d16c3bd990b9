"""Journals on an Aether server that is set up on its card: away, slow, revoked, and back by itself."""

import threading
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from cortex.base.errors import Conflict, NotAllowed, NotFound, ServiceDown, UserError
from cortex.integrations.cards.aether import AetherForm, AetherServer
from cortex.ports.aether import EntryChange, Journals
from cortex.ports.journals import PERSON, JournalBook
from tests.aether_server import TOKEN, AetherDouble
from tests.living_house import LivingHouse


@pytest.fixture
def aether() -> Iterator[AetherDouble]:
    with AetherDouble() as double:
        yield double


def book(
    double: AetherDouble, *, token: str = TOKEN, total_s: float = 10.0, waits: list[float] | None = None
) -> JournalBook:
    async def sleep(seconds: float) -> None:
        (waits if waits is not None else []).append(seconds)

    form = AetherForm(address=double.address, token=SecretStr(token))
    return AetherServer(form, sleep=sleep, total_s=total_s).journals("ann", "UTC", PERSON)


async def set_up(house: LivingHouse, aether: AetherDouble, **more: str) -> None:
    typed = {"address": aether.address, "token": TOKEN, **more}
    await house.cortex.integrations.save(house.admin, "aether", "", typed, is_new=True)


def tools(house: LivingHouse) -> Journals:
    return house.cortex.journals.for_tools(house.admin.id)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "does not accept its token any more. An admin can enter a new one"),
        (403, "does not accept its token any more"),
        (429, "too many requests"),
        (500, r"a problem \(status 500\)"),
        (503, r"a problem \(status 503\)"),
        (301, r"refused this \(status 301\)"),
        (428, r"refused this \(status 428\)"),
    ],
)
async def test_each_refusal_is_a_sentence_without_the_servers_words(
    aether: AetherDouble, status: int, words: str
) -> None:
    aether.faults.append((status, {}))
    with pytest.raises(ServiceDown, match=words) as refused:
        await book(aether).list()
    assert "Ignore all rules" not in refused.value.message
    assert await book(aether).list() == [], "the next one works again"


async def test_too_many_requests_are_waited_out_when_the_server_says_how_long(aether: AetherDouble) -> None:
    waits: list[float] = []
    aether.faults.append((429, {"Retry_After": "2"}))
    assert await book(aether, waits=waits).list() == []
    assert waits == [2.0]
    aether.faults.append((429, {"Retry_After": "600"}))
    with pytest.raises(ServiceDown, match="too many requests"):
        await book(aether, waits=waits).list()
    aether.faults.extend([(429, {"Retry_After": "1"})] * 2)
    with pytest.raises(ServiceDown, match="too many requests"):
        await book(aether, waits=waits).list()
    assert waits == [2.0, 1.0]


async def test_a_server_that_is_away_or_slow_says_so_and_comes_back(aether: AetherDouble) -> None:
    own = book(aether, total_s=0.3)
    await own.write("e1", "Garden", "Frost", "a", False)
    aether.stop()
    with pytest.raises(ServiceDown, match="could not be reached"):
        await own.entry("e1")
    aether.start()
    assert (await own.entry("e1")).text == "a"
    aether.delay = threading.Event()
    with pytest.raises(ServiceDown, match=r"did not answer within 0\.3 seconds"):
        await own.entry("e1")
    aether.delay.set()
    assert (await own.entry("e1")).text == "a"


@pytest.mark.parametrize(
    "body",
    [
        *("no json", "[]", "{}", '{"items": 5}', '{"items": [{"id": "../x"}], "next": null}'),
        *('{"items": [], "next": "a"}', "[" * 100_000),
    ],
    ids=["words", "list", "empty", "number", "hostile id", "endless", "deep"],
)
async def test_what_does_not_speak_the_contract_is_said_so(aether: AetherDouble, body: str) -> None:
    aether.raw = body
    for call in (book(aether).list(), book(aether).entries(None, "a", None, None, 9), book(aether).look("e1")):
        with pytest.raises(ServiceDown):
            await call


async def test_more_than_a_page_may_hold_is_not_read(aether: AetherDouble) -> None:
    aether.raw = '{"items": ["' + "x" * 9_000_000 + '"], "next": null}'
    with pytest.raises(ServiceDown, match="more than one page"):
        await book(aether).list()


async def test_a_long_list_is_read_page_by_page(aether: AetherDouble) -> None:
    own = book(aether)
    for number in range(12):
        await own.write(f"e{number}", "Garden", f"Day {number}", "x", False)
    aether.rows_most = 5
    assert len(await own.entries(None, "", None, None, 1_000)) == 12
    assert len(await own.entries(None, "", None, None, 7)) == 7
    assert [row.id for row in (await own.page(None, "", "", 25)).entries] == [f"e{n}" for n in range(11, 6, -1)]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "aether",
        "ftp://a.example",
        "http://",
        "http://user:pw@a.example",
        "http://a.example/?x=1",
        "http://a b",
        "http://[",
    ],
)
async def test_what_is_no_address_is_said_beside_its_field(
    house: LivingHouse, aether: AetherDouble, address: str
) -> None:
    with pytest.raises(UserError, match="Address"):
        await set_up(house, aether, address=address)


async def test_an_address_that_must_never_be_reached_is_refused(aether: AetherDouble) -> None:
    form = AetherForm(address="http://0.0.0.0:9", token=SecretStr("x"))
    with pytest.raises(NotAllowed):
        await AetherServer(form).test()


async def test_the_card_tests_the_server_in_words(house: LivingHouse, aether: AetherDouble) -> None:
    typed = {"address": f"{aether.address}/", "token": TOKEN}
    assert "takes the token" in await house.cortex.integrations.test(house.admin, "aether", "", typed)
    for other, words in (({"token": "wrong"}, "token"), ({"address": f"{aether.address}/elsewhere"}, "does not exist")):
        with pytest.raises(UserError, match=words):
            await house.cortex.integrations.test(house.admin, "aether", "", {**typed, **other})
    aether.stop()
    with pytest.raises(UserError, match="could not be reached"):
        await house.cortex.integrations.test(house.admin, "aether", "", typed)


async def test_each_person_has_a_space_of_their_own_there(house: LivingHouse, aether: AetherDouble) -> None:
    await set_up(house, aether)
    await tools(house).write("e1", "Garden", "Frost", "a", False)
    theirs = house.cortex.journals.for_tools(house.member.id)
    assert await theirs.list() == []
    with pytest.raises(NotFound):
        await theirs.entry("e1")
    assert set(aether.spaces) == {house.admin.id, house.member.id}


async def test_what_was_written_here_stays_here_and_is_back_without_the_server(
    house: LivingHouse, aether: AetherDouble
) -> None:
    await tools(house).write("e1", "Here", "Before", "a", False)
    await set_up(house, aether)
    assert await tools(house).list() == []
    await tools(house).write("e2", "There", "After", "b", False)
    await house.cortex.integrations.switch(house.admin, "aether", "", is_on=False)
    assert [one.name for one in await tools(house).list()] == ["Here"]
    await house.cortex.integrations.switch(house.admin, "aether", "", is_on=True)
    assert [one.name for one in await tools(house).list()] == ["There"]


async def test_who_may_not_use_the_server_has_journals_here(house: LivingHouse, aether: AetherDouble) -> None:
    await set_up(house, aether)
    await house.cortex.integrations.share(house.admin, "aether", "", (), (house.admin.id,))
    await house.cortex.journals.for_tools(house.member.id).write("e1", "Mine", "t", "a", False)
    assert aether.asked == []


async def test_a_revoked_token_and_a_new_one(house: LivingHouse, aether: AetherDouble) -> None:
    await set_up(house, aether)
    await tools(house).write("e1", "Garden", "Frost", "a", False)
    aether.token = "another-token"
    with pytest.raises(ServiceDown, match="Integrations"):
        await tools(house).entry("e1")
    card = await house.cortex.integrations.card("aether", "")
    assert (card.is_failing, "its token" in card.state) == (True, True)
    typed = {"address": aether.address, "token": "another-token"}
    await house.cortex.integrations.save(house.admin, "aether", "", typed, is_new=False)
    assert (await tools(house).entry("e1")).text == "a"
    assert (await house.cortex.integrations.card("aether", "")).state == "Works."


async def test_a_write_whose_answer_was_lost_is_made_once(aether: AetherDouble) -> None:
    """The server took it, and the client never heard: the same call again, at each request of it."""
    own = book(aether)
    for at in (1, 2, 3, 3):  # the last two are the PUTs: of the journal, and then of the entry
        aether.lost = at
        with pytest.raises(ServiceDown):
            await own.write("e1", "Garden", "Frost", "a", False)
    aether.lost = 0
    await own.write("e1", "Garden", "Frost", "a", False)
    space = aether.spaces["ann"]
    assert (len(space.journals), len(space.entries)) == (1, 1)
    aether.lost = 1
    with pytest.raises(ServiceDown):
        await own.change("e1", 1, EntryChange(text="b"))
    with pytest.raises(Conflict):
        await own.change("e1", 1, EntryChange(text="b"))
    assert (await own.entry("e1")).text == "b"
