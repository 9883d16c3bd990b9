"""Messages of three people and a stranger while Cortex is killed again and again: each answered once, in order."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.engine.database import is_postgres
from tests.databases import database_of
from tests.e2e.daemon import Daemon
from tests.e2e.test_kill_sweep import Mortal, knife_of
from tests.knife import Knife
from tests.scripted_server import ScriptedServer
from tests.services.messengers.messenger_house import messenger_house
from tests.telegram import TelegramDouble

SENT = 200
EACH = 15  # messages between two kills
# Ahead of what is stored of an update, ahead of a message that goes out, and ahead of the record that it went.
CUTS = [("asks", "after"), ("sends", "before"), ("sends", "after")]
MOST = 20  # messages in one life
SWEEP, WRITES = [("", "")] * 3, 60  # lives that end ahead of one of their first writes, wherever that is


@pytest.fixture(params=["telegram", pytest.param("matrix", marks=pytest.mark.full)])
def bot(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The double of Telegram, or a real Synapse."""
    if request.param == "matrix":
        yield request.getfixturevalue("town")
        return
    with TelegramDouble() as double:
        yield double


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


async def test_each_message_is_answered_once_to_its_own_person_under_kills(
    tmp_path: Path, bot: Any, model: ScriptedServer
) -> None:
    dice = random.Random(40)  # noqa: S311 - no secret
    *people, ola = bot.people
    said: dict[Any, list[str]] = {who["id"]: [] for who in people}
    at = 0
    async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
        mia = (await house.cortex.accounts.add_user("Mia", "member", "tulip quarry lantern 98")).user
        for user, who in zip((house.house.admin, house.house.member, mia), people, strict=True):
            await house.link(user, who)
    while at < SENT:
        async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
            bot.cut[bot.sends].extend(dice.choice(["", "", "before", "after"]) for _ in range(3))
            for at in range(at, min(at + EACH, SENT)):  # noqa: B020 - it goes on behind the kill
                who = dice.choice(bot.people)
                await asyncio.to_thread(bot.says, who, f"message m{at}.")
                if who is not ola:
                    said[who["id"]].append(f"m{at}.")
                await asyncio.sleep(dice.choice((0, 0.05, 0.2)))
            at += 1
    bot.cut.clear()
    async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
        await house.expect_once(said)


class MortalDaemon(Daemon):
    starts = Mortal


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.full)])
async def test_a_daemon_that_is_killed_at_any_place_answers_each_message_once(
    tmp_path: Path, bot: Any, model: ScriptedServer, times: int
) -> None:
    dice = random.Random(41 + times)  # noqa: S311 - no secret
    ada, ben, *_ = bot.people
    said: dict[Any, list[str]] = {ada["id"]: [], ben["id"]: []}
    async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
        for user, who in ((house.house.admin, ada), (house.house.member, ben)):
            await house.link(user, who)
    daemon = MortalDaemon(tmp_path / "home")
    knife = Knife(knife_of(daemon.home))
    bot.dies = lambda: os.kill(daemon.pid, signal.SIGKILL)
    at = 0
    try:
        # On PostgreSQL another process waits until the dead one's lease is over, a minute each time.
        places = CUTS if is_postgres(database_of(tmp_path / "home")) else (*CUTS, *SWEEP) * times
        for deed, when in places:
            came = 0
            await asyncio.to_thread(daemon.start)
            if deed:
                bot.cut[getattr(bot, deed)].append(when)
            else:
                knife.arm(dice.randrange(1, WRITES))
            while not daemon.has_ended:
                await asyncio.sleep(dice.choice((0.1, 0.4, 0.8)))
                if came == MOST:
                    continue
                came += 1
                who = dice.choice((ada, ben))
                await asyncio.to_thread(bot.says, who, f"message m{at}.")
                said[who["id"]].append(f"m{at}.")
                at += 1
            knife.disarm()
    finally:
        daemon.close()
    async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
        await house.expect_once(said)


async def test_an_hour_offline_is_caught_up_once(tmp_path: Path, bot: Any) -> None:
    async with messenger_house(tmp_path / "home", bot=bot) as house:
        ada = bot.people[0]
        await house.link(house.house.admin, ada)
        bot.says(ada, "before")
        await house.told(ada, "You said: before")
        bot.go_away()
        for at in range(5):
            bot.says(ada, f"meanwhile {at}")
        conversation = await house.conversation(house.house.admin)
        await house.house.say(conversation, "from the page")
        bot.go_away(is_away=False)
        bot.says(ada, "after")
        await house.told(ada, "You said: after")
        texts = await asyncio.to_thread(bot.texts, ada["id"])
        assert [
            sum(f"You said: {word}" in text for text in texts) for word in ("before", "from the page", "after")
        ] == [1] * 3
        assert [sum(f"You said: meanwhile {at}" in text for text in texts) for at in range(5)] == [1] * 5
