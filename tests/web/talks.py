"""Conversations for the chat's page tests: a running house whose model is scripted, with a talk in it to look at.

The talk is held once a process, through the product, and its home copied for each test.
"""

import asyncio
import atexit
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cortex.base.ids import new_id
from cortex.services.chat.transcript_views import TurnView, key_of
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.databases import copy_home
from tests.living_house import PASSWORD, LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.plain_world import PLAIN_TURN
from tests.scripted_server import Asked, Rule, Say, ScriptedServer, Use, rule

MODEL = "local/qwen"
KITCHEN = "Kitchen lights and the week ahead"
COMMAND = "echo \u202e 212\u00a0GB free && df -h ."
ANSWER = """\
Three of the four nightly jobs finished. **`cert-check` failed** with a timeout after 30 s; all others are fine.

| Job | Result | Time |
|---|---|--:|
| nightly-backup | finished | 5 min 41 s |
| journal-sync | finished | 12 s |
| cert-check | timed out | 30 s |

### What I would do

1. Run it again by hand, to see whether the host answers at all
2. Raise its limit to 60 s if it is only slow:

```python
# jobs/cert_check.py
async def check(host: str, timeout_s: float = 60.0) -> bool:
    \"\"\"Whether the certificate is good for 14 more days.\"\"\"
    left = await days_left(host, timeout_s)
    return left > 14
```

It failed on 19 November too, so this is *not* a single hiccup. See [the log](https://example.org/log)."""
MORNING = (
    "Morning, Ada. Nothing failed overnight and your first meeting is at 09:30. Two things were left open yesterday: "
    "the MariaDB upgrade window, and whether the old journal importer can go."
)
DONE = "Done: the lamp is on your list, and I will remind you on **Saturday at 10:00** to descale the kettle."
LAMP = "Add a new kitchen lamp to my shopping list and remind me on Saturday at 10 to descale the kettle"
LISTS = Say(calls=tuple(Use("task_list", {"list_name": name}) for name in ("home", "work", "food", "garden", "books")))


def after_the_word(asked: Asked) -> str:
    """What is said once the person has answered about the shell."""
    is_denied = any("denied this call" in result for result in asked.results)
    return "You denied it, so I left the volume alone." if is_denied else "It has **212 GB** free of 931 GB."


def _listing(asked: Asked) -> Use:
    """A call that differs from round to round, and comes in the last one too."""
    return Use("task_list", {"list_name": f"shelf {asked.answers_since_user}"}, is_blind=True)


RULES: tuple[Rule, ...] = (
    rule("stand-up", MORNING),
    rule(
        "descale",
        Say(
            calls=(
                Use("task_create", {"title": "kitchen lamp", "list_name": "shopping"}),
                Use("reminders_add", {"text": "Descale the kettle", "when": "Saturday at 10:00"}),
            )
        ),
        DONE,
    ),
    rule(
        "nightly job",
        Say(calls=(Use("cron_list"),), thinking="The user wants last night's runs. One listing is enough."),
        ANSWER,
    ),
    rule("five lists", LISTS, "Five lists read."),
    rule("milk", Use("task_create", {"title": "milk", "list_name": "shopping"}), "**Milk** is on your shopping list."),
    rule("disk space", Use("shell_exec", {"command": COMMAND}), after_the_word),
    rule("every shelf", *[_listing] * 25),
    rule("a reference", "See [x][r] and **more**\n\n[r]: https://example.org"),
    rule("try twice", "The second try came to its end."),
    rule("", "Understood. I kept this to plain conversation: no tool was needed, so none was sent."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A home in which Ada has talked. `kitchen`: the conversation to look at, `keys` its turns'; `token`: her login."""

    home: Path
    token: str
    kitchen: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talks:
    """The running house over a copy of that home. `model` is asked from now on."""

    living: LivingHouse
    model: ScriptedServer
    held: Held

    async def turns(self, conversation_id: str) -> tuple[TurnView, ...]:
        """The turns as the newest page shows them."""
        return (await self.living.cortex.chat.log(self.living.admin, conversation_id)).folded().turns

    async def ended(self, conversation_id: str) -> TurnView:
        """The newest turn, once it has ended."""
        turn = (await self.turns(conversation_id))[-1]
        await self.living.until(conversation_id, "turn.end", turn=turn.id)
        return (await self.turns(conversation_id))[-1]

    async def written(self, conversation_id: str, words: str) -> None:
        """Wait until a part that is being written holds these words."""
        hub, bell = self.living.cortex.hub, -1
        async with asyncio.timeout(PATIENCE_S):
            while not any(words in part.text for part in hub.open_parts(conversation_id)):
                bell = await hub.changed(conversation_id, bell, PATIENCE_S)

    async def long(self, turns: int) -> str:
        """A conversation of so many turns: each has the log of the kitchen's last one, as the product wrote it."""
        living, user = self.living, self.living.admin
        of, key = self.held.kitchen, self.held.keys[-1]
        made = await living.conversation()
        events = [event for event in await living.events(of) if event.turn_id == f"turn:{key}"]
        async with living.cortex.runtime.db.transaction(user.id) as repository:
            await repository(ConversationsRepository).rename(made, f"{turns} turns", by_user=True, is_tainted=False)
            for number in range(1, turns + 1):
                new = new_id()
                await repository(TurnsRepository).create(
                    NewTurn(f"turn:{new}", made, f"{LAMP} ({number})", state="done", **PLAIN_TURN)
                )
                rows = [(event.kind, _moved(event.payload, key, new), f"turn:{new}") for event in events]
                rows[0][1].update(text=f"{LAMP} ({number})", ordinal=number)
                await repository(ConversationsRepository).append(made, rows)
        return made


def _moved(payload: dict[str, Any], key: str, new: str) -> dict[str, Any]:
    """What an event says, of another turn."""
    moved: dict[str, Any] = json.loads(json.dumps(payload).replace(key, new))
    return moved


@asynccontextmanager
async def talking_house(home: Path, model: ScriptedServer, **settings: Any) -> AsyncIterator[Talks]:
    """Open the house over a copy of the home in which Ada has talked; it asks `model`, by `RULES`."""
    held = await talked_home()
    copy_home(held.home, home)
    model.rules = [*RULES]
    async with living_house(home, **settings) as living:
        await _connect(living, model)
        yield Talks(living=living, model=model, held=held)


async def _connect(living: LivingHouse, model: ScriptedServer) -> None:
    form = {"name": MODEL, "provider": "openai", "model": "qwen", "base_url": model.base_url, "api_key": model.api_key}
    await living.cortex.models.save(living.admin, form)


_homes: list[Held] = []  # the one that others are copied from, once there is one


async def talked_home() -> Held:
    """Return the home in which Ada has talked, made once a process: to be copied, never opened."""
    if not _homes:
        folder = Path(tempfile.mkdtemp(prefix="cortex-tests-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _homes.append(await _talked(folder / "home"))
    return _homes[0]


async def _talked(home: Path) -> Held:
    """Ada's talk, and the titles of three others beside it."""
    with ScriptedServer(*RULES) as model:
        async with living_house(home) as living:
            await _connect(living, model)
            for title in ("Compare heat pump quotes", "Letter to the landlord about the boiler", "Morning brief"):
                await living.cortex.conversations.rename(living.admin, await living.conversation(), title)
            kitchen = await living.conversation()
            said = ("Good morning. Anything I should know before the stand-up?", LAMP)
            keys = tuple([key_of(await living.say(kitchen, text)) for text in said])
            await living.cortex.conversations.rename(living.admin, kitchen, KITCHEN)
            await living.cortex.models.remove(living.admin, MODEL)
            token = await living.cortex.accounts.login("ada", PASSWORD, "127.0.0.1", "a test's browser")
        assert model.problems == []
    return Held(home=home, token=token, kitchen=kitchen, keys=keys)
