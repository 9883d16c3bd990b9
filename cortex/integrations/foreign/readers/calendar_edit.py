"""One resource of a calendar, after an edit: what to write in place of it."""

import json

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.appointments.moments import BROKEN
from cortex.integrations.foreign.appointments.writing import written
from cortex.integrations.foreign.program import Emit, Source

FAULT = "This appointment cannot be changed here: what the server has of it cannot be read."


def read(source: Source, emit: Emit) -> None:
    """Say the whole resource anew: `{"data", "edit", "zone", "now"}`."""
    try:
        emit({"data": written(json.loads(source.data))})
    except UnreadableError:
        raise
    except BROKEN as error:
        raise UnreadableError(FAULT) from error
