"""Resources of calendars, several at once: each with its appointments and their dates in a window of time."""

import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from cortex.integrations.foreign.appointments.moments import BROKEN
from cortex.integrations.foreign.appointments.reading import appointments_of
from cortex.integrations.foreign.appointments.series import Window
from cortex.integrations.foreign.program import Emit, Source

AT_ONCE = 200  # in one line of the answer
FAULT = "This is no calendar that can be read."


def read(source: Source, emit: Emit) -> None:
    """Say of each resource what is in it, as it comes in: `{"since", "until", "zone", "resources": [[href, data]]}`."""
    order: dict[str, Any] = json.loads(source.data)
    window = Window(datetime.fromisoformat(order["since"]), datetime.fromisoformat(order["until"]))
    zone = ZoneInfo(order["zone"])
    for href, data in order["resources"]:
        try:
            made = appointments_of(data, window, zone)
        except BROKEN:  # one resource that breaks the parser must not take the others with it
            emit({"href": href, "fault": FAULT})
            continue
        for start in range(0, len(made), AT_ONCE):
            emit({"href": href, "appointments": made[start : start + AT_ONCE]})
