"""`cortex worker`: one of several processes that run turns on a shared PostgreSQL, until a signal comes.

Loads no web framework. It has no page of its own: `cortex web` has.
"""

import asyncio
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack

from cortex.app import Cortex
from cortex.base.settings import Settings, unknown_variables
from cortex.base.start import settings_in_force
from web.signals import ProcessSignals, cancelled_by

log = logging.getLogger(__name__)


def main() -> None:
    """Work by the settings in force."""
    run(settings_in_force())


def run(settings: Settings) -> None:
    """Work until a signal comes. Raises ConfigError when it must not or cannot start."""
    for line in unknown_variables(os.environ):
        log.warning(line)
    signals = ProcessSignals()
    with signals.heard():
        signals.run(cancelled_by(signals, Cortex.catch_up(settings)))
        signals.run(work(settings, signals))


async def work(settings: Settings, signals: ProcessSignals) -> None:
    """Open the server, say so, wait for SIGTERM or SIGINT, bring open turns to a safe point."""
    ended = asyncio.Event()
    async with AsyncExitStack() as stack:
        cortex = await cancelled_by(signals, stack.enter_async_context(Cortex.worker(settings)))
        with signals.obeying(signal.SIGUSR1, cortex.stop_all.pull), signals.ending(ended.set):
            sys.stdout.write(f"Cortex works (process {os.getpid()})\n")
            sys.stdout.flush()
            await ended.wait()
        log.info("shutting down: waiting for running turns to reach a safe point; other workers resume them")
