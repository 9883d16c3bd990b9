"""The immutable set of all tools: lookup, order, version. It grants nothing: what a user may run is the gate's word."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from hashlib import sha256
from types import MappingProxyType, ModuleType

from cortex.toolkit.examples import Example
from cortex.toolkit.schema import canonical
from cortex.toolkit.spec import Category, Tool


class Registry:
    """Every category and tool, ordered by category name, then by definition. Equal content gives an equal `version`."""

    def __init__(
        self, categories: Iterable[Category], *, several: tuple[Example, ...] = (), none: tuple[Example, ...] = ()
    ) -> None:
        """Take the categories in; TypeError when two tools share a name.

        several: utterances with needs of more than one category. none: such as need no tool, by kind (chat, llm,
        open) in place of the names.
        """
        ordered = sorted(categories, key=lambda category: category.name)
        tools: dict[str, Tool] = {}
        for category in ordered:
            for tool in category.tools:
                if tool.name in tools:
                    raise TypeError(f"two tools are named {tool.name!r}")
                tools[tool.name] = tool
        self.categories: Mapping[str, Category] = MappingProxyType({item.name: item for item in ordered})
        self.tools: Mapping[str, Tool] = MappingProxyType(tools)
        self.several = several
        self.none = none
        self.version = _version(ordered, several + none)

    def get(self, name: str) -> Tool | None:
        """The tool of this exact name, or None."""
        return self.tools.get(name)

    def category(self, name: str) -> Category | None:
        """The category of this name, or None."""
        return self.categories.get(name)

    def missing(self, name: str, wired: AbstractSet[str]) -> tuple[str, ...]:
        """The ports that the tool needs and that are not in `wired`; () = ready. KeyError for an unknown tool."""
        tool = self.tools[name]
        needs = (*self.categories[tool.category].needs, *tool.needs)
        return tuple(dict.fromkeys(need for need in needs if need not in wired))

    @property
    def needs(self) -> frozenset[str]:
        """Every port that some tool needs."""
        own = (need for tool in self.tools.values() for need in tool.needs)
        return frozenset(own) | {need for category in self.categories.values() for need in category.needs}

    def configured(self, wired: AbstractSet[str]) -> frozenset[str]:
        """Names of the tools whose every port is in `wired` (class names of what `ctx.use` opens)."""
        return frozenset(name for name in self.tools if not self.missing(name, wired))


def category_of(module: ModuleType) -> Category:
    """The category that a file of `cortex/tools/` describes; TypeError says which of its parts is wrong."""
    stem = module.__name__.rpartition(".")[2]
    own = [value for value in vars(module).values() if isinstance(value, Tool) and value.category == stem]
    prefixes: tuple[str, ...] = getattr(module, "PREFIXES", (f"{stem}_",))
    strays = [tool.name for tool in own if not tool.name.startswith(prefixes)]
    if not own or strays:
        raise TypeError(f"tools/{stem}.py: no tool, or names outside its prefixes {prefixes}: {strays}")
    made = Category(
        name=stem,
        summary=module.SUMMARY,
        tools=tuple(own),
        phrases=tuple(getattr(module, "PHRASES", ())),
        examples=tuple(getattr(module, "EXAMPLES", ())),
        undo=getattr(module, "undo", None),
        needs=tuple(getattr(module, "NEEDS", ())),
    )
    names = {tool.name for tool in own}
    said = {name for _, wanted in made.examples for name in wanted if name.startswith(prefixes)}
    named = said | {name for phrase in made.phrases for name in phrase.tools}
    if named - names:
        raise TypeError(f"tools/{stem}.py: examples or phrases name unknown tools {sorted(named - names)}")
    return made


def _version(categories: list[Category], beside: tuple[Example, ...]) -> str:
    """A hash over all that selection and the gate can see, so that a changed registry opens an epoch."""
    facts = [
        [
            category.name,
            category.summary,
            [[tool.hash, tool.risk, tool.effect, tool.confirm, tool.admin, *_flags(tool)] for tool in category.tools],
            [[phrase.text, phrase.weight, phrase.tools, phrase.unless] for phrase in category.phrases],
            category.examples,
        ]
        for category in categories
    ]
    return sha256(canonical([facts, beside]).encode()).hexdigest()[:16]


def _flags(tool: Tool) -> tuple[object, ...]:
    return (tool.policy, tool.ambient, tool.free, tool.sends_out, tool.reads_untrusted, tool.needs)
