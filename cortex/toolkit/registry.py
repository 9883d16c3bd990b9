"""The set of all tools: lookup, order, version. It grants nothing: what a user may run is the gate's word.

What ships never changes; what is set up besides (tools of MCP servers) is put in or taken out at once, as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType, ModuleType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.toolkit.examples import Example, examples_of
from cortex.toolkit.schema import canonical
from cortex.toolkit.spec import Category, Function, Tool


class ToolSet(Struct, frozen=True, kw_only=True, eq=False):
    """Every category and tool at one moment, ordered by category name, then by definition.

    several: utterances with needs of more than one category. none: such as need no tool, by kind (chat, llm, open) in
    place of the names. Equal content gives an equal `version`. `roles`, `admin_roles`: the words by which the roles
    that come with Cortex have these tools, by role.
    """

    categories: Mapping[str, Category]
    tools: Mapping[str, Tool]
    several: Sequence[Example]
    none: Sequence[Example]
    version: str
    roles: Mapping[str, tuple[str, ...]]
    admin_roles: Mapping[str, tuple[str, ...]]


class Registry:
    """The tools that ship, and those that are set up besides.

    `held`: all of them now. Who needs them to belong together over more than one look keeps that value.
    """

    def __init__(
        self, categories: Iterable[Category], *, several: Sequence[Example] = (), none: Sequence[Example] = ()
    ) -> None:
        """Take the categories in; TypeError when two tools share a name. several, none: as in `ToolSet`."""
        self.shipped = self.held = _tool_set(categories, several, none)

    def put(self, categories: Iterable[Category]) -> None:
        """Hold these beside what ships, in place of those that were put before.

        A name that is taken already stays whose it was: nothing from outside can stand in for what ships.
        """
        shipped, taken, named = self.shipped, set(self.shipped.tools), set(self.shipped.categories)
        added: list[Category] = []
        for category in sorted(categories, key=lambda one: one.name):
            own = tuple(tool for tool in category.tools if tool.name not in taken)
            if own and category.name not in named:
                named.add(category.name)
                taken.update(tool.name for tool in own)
                added.append(replace(category, tools=own))
        found = _tool_set((*shipped.categories.values(), *added), shipped.several, shipped.none) if added else shipped
        if found.version != self.held.version or _of_plugins(found) != _of_plugins(self.held):
            self.held = found

    @property
    def categories(self) -> Mapping[str, Category]:
        """Every category by its name."""
        return self.held.categories

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool by its name."""
        return self.held.tools

    @property
    def several(self) -> Sequence[Example]:
        """Utterances with needs of more than one category."""
        return self.held.several

    @property
    def none(self) -> Sequence[Example]:
        """Utterances that need no tool."""
        return self.held.none

    @property
    def version(self) -> str:
        """A hash over all that selection and the gate can see."""
        return self.held.version

    def get(self, name: str) -> Tool | None:
        """The tool of this exact name, or None."""
        return self.tools.get(name)

    def category(self, name: str) -> Category | None:
        """The category of this name, or None."""
        return self.categories.get(name)

    def missing(self, name: str, wired: AbstractSet[str]) -> tuple[str, ...]:
        """The ports that the tool needs and that are not in `wired`; () = ready. KeyError for an unknown tool."""
        held = self.held
        tool = held.tools[name]
        needs = (*held.categories[tool.category].needs, *tool.needs)
        return tuple(dict.fromkeys(need for need in needs if need not in wired))

    @property
    def needs(self) -> frozenset[str]:
        """Every port that some tool needs."""
        return _needs(self.held)

    def configured(self, wired: AbstractSet[str]) -> frozenset[str]:
        """Names of the tools whose every port is in `wired` (class names of what `ctx.use` opens)."""
        return frozenset(name for name in self.tools if not self.missing(name, wired))


def _of_plugins(held: ToolSet) -> Mapping[str, Function]:
    """Return the function behind each: of two packages with the same words one may be revoked."""
    return {name: tool.function for name, tool in held.tools.items() if tool.is_plugin}


@lru_cache(maxsize=4)
def _needs(held: ToolSet) -> frozenset[str]:
    own = (need for tool in held.tools.values() for need in tool.needs)
    return frozenset(own) | {need for category in held.categories.values() for need in category.needs}


def category_of(module: ModuleType) -> Category:
    """The category that a tool file describes; TypeError or ValueError says which of its parts is wrong."""
    stem = module.__name__.rpartition(".")[2]
    own = [value for value in vars(module).values() if isinstance(value, Tool) and value.category == stem]
    prefixes: tuple[str, ...] = getattr(module, "PREFIXES", (f"{stem}_",))
    strays = [tool.name for tool in own if not tool.name.startswith(prefixes)]
    if not own or strays:
        raise TypeError(f"{stem}.py: no tool, or names outside its prefixes {prefixes}: {strays}")
    examples = examples_of(module)
    made = Category(
        name=stem,
        summary=module.SUMMARY,
        tools=tuple(own),
        examples=examples,
        undo=getattr(module, "undo", None),
        needs=tuple(getattr(module, "NEEDS", ())),
        tested=getattr(module, "TESTED", ""),
        roles=_words_by_role(module, "ROLES"),
        admin_roles=_words_by_role(module, "ADMIN_ROLES"),
        samples=getattr(module, "SAMPLES", {}),
    )
    names = {tool.name for tool in own}
    said = {name for name in examples.names if name.startswith(prefixes)}
    for part, found in (
        ("examples", said),
        ("ROLES", {word for words in made.roles.values() for word in words} - {stem}),
        ("ADMIN_ROLES", {word for words in made.admin_roles.values() for word in words} - {stem}),
        ("SAMPLES", set(made.samples)),
    ):
        if found - names:
            raise TypeError(f"{stem}.py: {part} name unknown tools {sorted(found - names)}")
    return made


def _words_by_role(module: ModuleType, name: str) -> Mapping[str, tuple[str, ...]]:
    given: Any = getattr(module, name, {})  # Any: whatever the file says
    if not isinstance(given, Mapping) or any(isinstance(words, str) for words in given.values()):
        raise TypeError(f'{module.__name__}: {name} must be a mapping such as {{"orchestrator": ("web",)}}')
    return {role: tuple(words) for role, words in given.items()}


def _tool_set(categories: Iterable[Category], several: Sequence[Example], none: Sequence[Example]) -> ToolSet:
    ordered = sorted(categories, key=lambda category: category.name)
    tools: dict[str, Tool] = {}
    for category in ordered:
        for tool in category.tools:
            if tool.name in tools:
                raise TypeError(f"two tools are named {tool.name!r}")
            tools[tool.name] = tool
    return ToolSet(
        categories=MappingProxyType({item.name: item for item in ordered}),
        tools=MappingProxyType(tools),
        several=several,
        none=none,
        version=_version(ordered, [*several, *none]),
        roles=_joined(category.roles for category in ordered),
        admin_roles=_joined(category.admin_roles for category in ordered),
    )


def _joined(given: Iterable[Mapping[str, tuple[str, ...]]]) -> Mapping[str, tuple[str, ...]]:
    joined: dict[str, tuple[str, ...]] = {}
    for roles in given:
        for role, words in roles.items():
            joined[role] = (*joined.get(role, ()), *words)
    return MappingProxyType(joined)


def _version(categories: list[Category], beside: Sequence[Example]) -> str:
    """A hash over all that selection and the gate can see, so that a changed registry opens an epoch."""
    facts = (
        [
            category.name,
            category.summary,
            [[tool.hash, tool.risk, tool.effect, tool.confirm, tool.admin, *_flags(tool)] for tool in category.tools],
            [*category.examples],
        ]
        for category in categories
    )
    told = ",".join(map(canonical, facts))  # one by one: all utterances at once would be 5 MB for a moment
    return sha256(f"[[{told}],{canonical(beside)}]".encode()).hexdigest()[:16]


def _flags(tool: Tool) -> tuple[object, ...]:
    return (tool.policy, tool.ambient, tool.free, tool.sends_out, tool.reads_untrusted, tool.needs, tool.is_grave)
