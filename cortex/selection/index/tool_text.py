"""What stands for a tool where it is read for its meaning: name, description, arguments with their values, category."""

from cortex.selection.types import ToolEntry
from cortex.selection.words import text


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
