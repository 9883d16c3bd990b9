"""The rows of the bench's files, as they are checked when they are read. Unknown keys are ignored."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Kind = Literal["tool", "chat", "llm", "open", "pending"]
Groups = tuple[tuple[str, ...], ...]
Said = tuple[str, str]  # speaker (user or assistant), text


def _groups(value: Any) -> Any:  # Any: what JSON holds
    """Nothing is no group; a bare name is a group of one, a flat list of names one group."""
    if value is None:
        return ()
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return (tuple(value),)
    return tuple((item,) if isinstance(item, str) else item for item in value) if isinstance(value, list) else value


def _portable(value: Any) -> Any:
    """A history: {"user": …}, {"assistant": …}, {"role": …, "content": …}, or a bare text of the user's."""
    return tuple(_said(item) for item in value or ()) if value is None or isinstance(value, list) else value


def _said(item: Any) -> Any:
    if isinstance(item, str):
        return ("user", item)
    if not isinstance(item, dict):
        raise ValueError("a turn of the history is neither a text nor an object")
    if "content" in item:
        return (str(item.get("role", "user")), str(item["content"] or ""))
    speaker = next((speaker for speaker in ("user", "assistant") if speaker in item), "")
    if not speaker:
        raise ValueError('a turn of the history has neither "user" nor "assistant"')
    return (speaker, str(item[speaker] or ""))


def _or_nothing(value: Any) -> Any:
    return "" if value is None else value


History = Annotated[tuple[Said, ...], BeforeValidator(_portable)]
Mark = Annotated[str, Field(coerce_numbers_to_str=True)]
Needs = Annotated[Groups, BeforeValidator(_groups)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Utterance(_Row):
    """A line of a routing file: what a person wrote, and the tools that it needs; each group by one of its names."""

    id: Mark = ""
    text: str
    kind: Kind
    need_tools: Needs = ()
    need_categories: Needs = ()
    conversation: Mark | None = None
    turn: int = 0
    history: History = ()


class OfferedTool(_Row):
    """A line of a catalogue: a tool as somebody else describes it."""

    name: str = Field(min_length=1)
    description: Annotated[str, BeforeValidator(_or_nothing)] = ""
    group: str | None = None
    parameters: Any = None  # whatever another format calls parameters


class Query(_Row):
    """A line of a queries file. `gold_any`, where given, stands for `gold`: each group met by one of its names."""

    id: Mark = ""
    query: str
    gold: tuple[str, ...] | None = None
    gold_any: Needs = ()
    history: History = ()

    @property
    def groups(self) -> Groups:
        """What must be found."""
        return self.gold_any or tuple((name,) for name in self.gold or ())
