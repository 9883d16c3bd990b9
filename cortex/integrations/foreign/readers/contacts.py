"""Resources of address books, several at once, each with its contact; or one of them, after an edit."""

import json
from typing import Any

from cortex.integrations.foreign.cards.reading import contact_of
from cortex.integrations.foreign.cards.writing import written
from cortex.integrations.foreign.program import Emit, Source

FAULT = "This is no contact that can be read."
BROKEN = (ValueError, TypeError, KeyError, IndexError)


def read(source: Source, emit: Emit) -> None:
    """Answer one order.

    `{"resources": [[href, data]]}`: say of each what is in it, as it comes in; a group says nothing. `{"data", "uid",
    "fields", "now"}`: say the whole resource anew.
    """
    order: dict[str, Any] = json.loads(source.data)
    if "fields" in order:
        emit({"data": written(order)})
        return
    for href, data in order["resources"]:
        try:
            found = contact_of(data)
        except BROKEN:  # one resource that cannot be read must not take the others with it
            emit({"href": href, "fault": FAULT})
            continue
        emit({"href": href, "contact": found})
