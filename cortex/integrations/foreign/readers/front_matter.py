"""The front matter of a Markdown file in the whole of YAML: its keys, or the slip in it."""

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.program import Emit, Source
from cortex.integrations.foreign.yaml_texts import texts_of


def read(source: Source, emit: Emit) -> None:
    """One finding. UnreadableError with the slip."""
    keys = texts_of(source.data.decode("utf-8", "replace"))
    for key, value in keys.items():
        if isinstance(value, dict) or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
            raise UnreadableError(f"{key[:60]!r} is a text or a list of texts.")
    emit({"keys": keys})
