"""Answers that have to be JSON: how a model is asked for them, and whether one is what was asked for."""

import json
import re
from typing import Any

from msgspec import Struct

from cortex.base import scan
from cortex.base.json_text import parsed
from cortex.base.tokens import minified
from cortex.toolkit.json_schema import harmless

LONGEST = 1_000_000  # characters that are looked at
SAID = 300
_FENCED = re.compile(r"\A\s*```[a-zA-Z0-9]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)


class JsonWanted(Struct, frozen=True, kw_only=True):
    """`schema`: what it has to fit; None for any object."""

    schema: dict[str, Any] | None = None

    @property
    def words(self) -> str:
        """Return what asks a model for it that does not know this parameter."""
        if self.schema is None:
            return "Answer with one JSON object and nothing else: no words around it, no code fence."
        fits = "Answer with one JSON value and nothing else (no words around it, no code fence) that fits this schema:"
        return f"{fits}\n{minified(self.schema)}"

    def taken_from(self, answer: str) -> str:
        """The JSON of an answer, without the fence that some models put round it. ValueError says what is wrong.

        A schema is checked as far as that takes bounded time: by types, names, choices and sizes, not by patterns.
        """
        fenced = _FENCED.match(answer[:LONGEST])
        text = (fenced[1] if fenced else answer).strip()
        try:
            value = parsed(text)
        except ValueError:
            raise ValueError("it is not JSON") from None
        if self.schema is None:
            if not isinstance(value, dict):
                raise ValueError("it is not a JSON object")
        elif isinstance(value, dict) and self.schema.get("type", "object") == "object":
            fault = str(scan.load("cortex.services.api.schema_faults").first_fault(harmless(self.schema), value))
            if fault:
                raise ValueError(fault[:SAID])
        elif self.schema.get("type") == "object":
            raise ValueError("it is not a JSON object")
        return text


def wanted_by(parameters: tuple[tuple[str, str], ...]) -> JsonWanted | None:
    """Return what the `response_format` among these parameters asks for; None for words."""
    text = dict(parameters).get("response_format")
    if text is None:
        return None
    given = json.loads(text)
    return JsonWanted(schema=given["json_schema"]["schema"] if given["type"] == "json_schema" else None)


def refusal(wrong: ValueError) -> str:
    """Return what a program is told of an answer that does not fit."""
    return f"The model's answer is not what response_format asks for: {wrong}. Ask again, or ask another model."
