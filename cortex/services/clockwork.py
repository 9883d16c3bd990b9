"""Everything that happens by the clock, over the house's ground: jobs and reminders, what fires them, what runs them.

`app.py` makes it once and lets `run` go on beside the rest; pages take its parts.
"""

from dataclasses import dataclass
from typing import Self

from cortex.base.time_ports import Reminders, Timings
from cortex.schedule.reading import Reader
from cortex.services.alarm import Alarm
from cortex.services.due_reminders import DueReminders
from cortex.services.house import House
from cortex.services.notices import Notices
from cortex.services.reminders import RemindersService
from cortex.services.scope import ToolScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Clockwork:
    """The doors, and the clock that rings."""

    alarm: Alarm
    reminders: RemindersService

    @classmethod
    def over(cls, house: House, scope: ToolScope, notices: Notices) -> Self:
        """All of it; the tools' ports are opened by `scope`, answers to notices reach the reminders."""
        timings, alarm = Reader(), Alarm(house.clock)
        reminders = RemindersService(house=house, timings=timings, tell=notices)
        due = DueReminders(house=house, timings=timings, tell=notices)
        alarm.add("reminder", due.armed, due.fire)
        notices.on_acknowledged("reminder", reminders.answered)
        scope.add(Timings, lambda _: timings)
        scope.add(Reminders, reminders.opened)
        return cls(alarm=alarm, reminders=reminders)

    async def run(self) -> None:
        """For ever: fire what is due."""
        await self.alarm.run()
