"""How a tool is read: as a bag of weighted terms, for `search.py`, and as one text, for its meaning. Knows no score."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

from cortex.selection.types import ToolEntry
from cortex.selection.words import text

NAME_WEIGHT, SUMMARY_WEIGHT, PARAMETER_WEIGHT, EXAMPLE_WEIGHT = 2.0, 1.0, 0.5, 0.5
UNKNOWN_WORTH = 0.5  # what a term tells that no document holds, beside a rare one
Bag = Mapping[str, float]


def words(entry: ToolEntry, told: Iterable[str]) -> Bag:
    """A tool's stemmed words: name, summary, parameters, and what people say for it."""
    found: dict[str, float] = {}
    for terms, weight in parts(entry, told):
        for term in terms:
            found[term] = found.get(term, 0.0) + weight
    return found


def parts(entry: ToolEntry, told: Iterable[str]) -> Iterator[tuple[tuple[str, ...], float]]:
    """The same part by part, each with what its terms weigh."""
    return ((text.terms(said), weight) for said, weight in _readings(entry, told))


def digest(entry: ToolEntry, told: Iterable[str]) -> int:
    """Return what a tool's words are known by, in 64 bits."""
    said = "\n".join(f"{weight} {said}" for said, weight in _readings(entry, told))
    return int.from_bytes(blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _readings(entry: ToolEntry, told: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Return what there is to read of a tool, each with its weight."""
    yield text.spaced(entry.name), NAME_WEIGHT
    yield entry.full.description, SUMMARY_WEIGHT
    properties = entry.full.parameters.get("properties", {}).items()
    notes = (node.get("description", "") if isinstance(node, dict) else "" for _, node in properties)
    names = (text.spaced(name) for name, _ in properties)
    yield "\n".join(f"{name} {note}" for name, note in zip(names, notes, strict=True)), PARAMETER_WEIGHT
    for said in told:
        yield said, EXAMPLE_WEIGHT


def worded(entry: ToolEntry) -> str:
    """A tool in its own words, as one text.

    Of its description each line that says more than its name: the first line of what an MCP server brings is its name
    again.
    """
    name = text.spaced(entry.name)
    known = frozenset(text.words(name))
    told = (line for line in entry.full.description.splitlines() if not known.issuperset(text.words(line)))
    arguments = (_argument(*each) for each in entry.full.parameters.get("properties", {}).items())
    return "\n".join((f"{name}: {' '.join(told)}", *arguments, text.spaced(entry.category)))


def _argument(name: str, node: object) -> str:
    """An argument: its name, what is said of it, the words that it may be."""
    if not isinstance(node, dict):
        return text.spaced(name)
    values = node.get("enum")
    said = (name, node.get("description"), *(values if isinstance(values, list) else ()))
    return " ".join(text.spaced(each).strip() for each in said if isinstance(each, str))
