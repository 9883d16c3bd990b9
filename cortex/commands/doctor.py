"""`cortex doctor`: what is wrong here, what a proxy does, and whether a message is answered at all."""

import asyncio
import tempfile
from pathlib import Path

from cortex.app import Cortex
from cortex.base.clock import ticks_s
from cortex.base.errors import ConfigError, CortexError
from cortex.base.settings import Settings
from cortex.services.health.finding import Finding, bad, good, proxy_finding

TURN_S = 120.0
NAME = "a turn"
WORDS = "hello"
LOG = "Run it again with CORTEX_LOG_LEVEL=debug, and look at the last lines."


async def examine(cortex: Cortex) -> list[Finding]:
    """Everything, in the order in which one would mend it."""
    found = await cortex.doctor.examine()
    if cortex.settings.public_url:
        found.append(await proxy_finding(cortex.settings.public_url))
    return [*found, await turn_finding(cortex.settings)]


async def turn_finding(settings: Settings) -> Finding:
    """Tell whether this program, Python and SQLite answer a message: the offline model's, in a home of its own."""
    began_s = ticks_s()
    try:
        with tempfile.TemporaryDirectory(prefix="cortex-doctor-", ignore_cleanup_errors=True) as folder:
            async with asyncio.timeout(TURN_S), Cortex.open(_apart(settings, Path(folder))) as cortex:
                answer = await _answer(cortex)
            wrong = "" if answer else "The offline model's turn ended without an answer."
    except TimeoutError:
        wrong = f"The offline model gave no answer within {TURN_S:.0f} s."
    except (ConfigError, CortexError, OSError) as error:
        wrong = f"The offline model could not be asked: {error}"
    if wrong:
        return bad(NAME, wrong, LOG)
    return good(NAME, f"The offline model answered after {ticks_s() - began_s:.1f} s.")


def _apart(settings: Settings, home: Path) -> Settings:
    """The settings for a home that nobody else sees, and that is gone afterwards."""
    empty = dict.fromkeys(("database_url", "engine_url", "secret_key", "backup_to", "otel_endpoint"), "")
    own = {"home": home, "backup_nightly": False, "shutdown_grace_s": 1.0, "offline_delay_ms": 0}
    return settings.model_copy(update={**empty, **own})


async def _answer(cortex: Cortex) -> str:
    person = (await cortex.accounts.add_user("doctor", "member")).user
    conversation = await cortex.conversations.new(person, role="orchestrator")
    turn_id = await cortex.chat.send_message(person, conversation.id, WORDS)
    async for events, _ in cortex.chat.follow(person, conversation.id, 0):
        if any(event.kind == "turn.end" and event.payload.get("turn") == turn_id for event in events):
            break
    page = await cortex.chat.log(person, conversation.id)
    return "".join(str(event.payload["text"]) for event in page.events if event.kind == "part.end")
