"""How much of the code a due prompt job passes, from its time until its notice is delivered by ntfy: never more."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event

from cortex.services.jobs.forms import JobForm
from cortex.storage.db import Database
from tests.living_house import living_house
from tests.notify.loopback import Loopback, Reply
from tests.paths import Most, Walk
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, rule
from tests.still_clock import StillClock

NOON = datetime(2020, 11, 20, 12, 0, tzinfo=UTC)  # long ago: what is armed here is due at once
MOST = Most(modules=149, sessions=21, commits=16)  # kept statements, packed plans and records are modules of their own


class Delivered:
    """Hears that a delivery was booked as delivered, from the database itself."""

    def __init__(self, db: Database) -> None:
        self.times = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._engine = db.write.sync_engine
        self._is_written = False
        event.listen(self._engine, "before_cursor_execute", self._writes)
        event.listen(self._engine, "commit", self._commits)

    def _writes(self, _connection: Connection, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("UPDATE deliveries") and "delivered" in str(parameters):
            self._is_written = True

    def _commits(self, _connection: Connection) -> None:
        if self._is_written:
            self._is_written = False
            self._loop.call_soon_threadsafe(self.times.set)


async def test_a_due_prompt_job_stays_on_its_path(tmp_path: Path, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("water", "Water the fern.")]
    clock = StillClock(NOON)
    sent = Reply(status=200, body=b'{"id":"a"}')
    with Walk() as walk, Loopback(sent, sent, sent) as ntfy:
        hosts = [f"{host}:{port}" for host, port in [ntfy.place]]
        async with living_house(tmp_path, clock=clock, notify_hosts=hosts) as house:
            await house.connect(scripted)
            await house.cortex.addresses.put(house.admin, "ntfy", f"{ntfy.origin}/plants")
            delivered = Delivered(house.cortex.runtime.db)
            form = JobForm(name="Plants", prompt="water the plants", when="every day at 13:00", time_zone="UTC")
            await house.cortex.jobs.add(house.admin, form)
            for day in range(3):
                clock.at = NOON + timedelta(days=day, hours=1)
                delivered.times.clear()
                with walk.counted() as way:
                    house.cortex.scheduler.wake()
                    async with asyncio.timeout(PATIENCE_S):
                        await delivered.times.wait()
        assert len(ntfy.seen) == 3
    MOST.hold(way)
