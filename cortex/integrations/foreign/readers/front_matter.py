"""Front matters of Markdown files in the whole of YAML, a JSON list of them: of each its keys, or the slip in it."""

import json
from typing import Any

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.program import Emit, Source
from cortex.integrations.foreign.yaml_texts import texts_of


def read(source: Source, emit: Emit) -> None:
    """A finding for each, in their order."""
    for head in json.loads(source.data):
        try:
            emit({"keys": _keys(head)})
        except UnreadableError as error:
            emit({"slip": str(error)})


def _keys(head: str) -> dict[str, Any]:
    keys = texts_of(head)
    for key, value in keys.items():
        if isinstance(value, dict) or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
            raise UnreadableError(f"{key[:60]!r} is a text or a list of texts.")
    return keys
