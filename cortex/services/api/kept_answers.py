"""Answers with calls as models gave them, for a while: their reasoning goes back with the results, and clients drop it.

Kept in memory, by token; after a restart a model gets what the program sends, without the reasoning.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from cortex.base.messages import Message, Opaque, Thinking, ToolCall, to_json
from cortex.base.tokens import minified

MOST = 512
MOST_CHARACTERS = 8_000_000  # of all of them


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """Those of all tokens; the ones used longest ago go first."""

    _kept: OrderedDict[tuple[str, tuple[ToolCall, ...]], tuple[Message, int]] = field(default_factory=OrderedDict)

    def keep(self, token_id: str, answer: Message) -> None:
        """Keep an answer that calls tools, where there is more to it than a client sends back."""
        if not answer.calls or not any(isinstance(part, Opaque | Thinking) for part in answer.parts):
            return
        self._kept[token_id, answer.calls] = answer, len(minified(to_json(answer)))
        held = sum(size for _, size in self._kept.values())
        while len(self._kept) > MOST or held > MOST_CHARACTERS:
            _, (_, size) = self._kept.popitem(last=False)
            held -= size

    def known(self, token_id: str, calls: tuple[ToolCall, ...]) -> Message | None:
        """The answer with these very calls."""
        found = self._kept.get((token_id, calls))
        if found is None:
            return None
        self._kept.move_to_end((token_id, calls))
        return found[0]
