"""Whatever a running daemon keeps has a bound: caches by their size, containers by what takes out of them again.

It reads the program's text. A container counts as one that grows where its own module or class puts things in, and as
one with an end where the same takes things out, makes it anew, or the container itself knows how many it may hold.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CACHES = {"cache", "lru_cache", "cached"}
MADE = {"dict", "set", "list", "OrderedDict", "defaultdict", "Counter", "deque", "bytearray"}
WEAK = {"WeakSet", "WeakValueDictionary", "WeakKeyDictionary"}  # as long as somebody else holds what is in it
GROWS = {"append", "add", "extend", "insert", "setdefault", "update", "appendleft", "subtract"}
SHRINKS = {"pop", "popitem", "popleft", "clear", "discard", "remove", "difference_update", "intersection_update"}

# What grows and has no end that its text shows, each with what bounds it.
EXCUSES = {
    "cortex/agent/react.py: _Run.seen": "of one turn",
    "cortex/base/log.py: SecretFilter._values": "the secrets of the settings",
    "cortex/base/tokens.py: _counter": "one entry: the function, once it is loaded",
    "cortex/engine/dbos.py: Engine._bodies": "the kinds of runs, registered at the start",
    "cortex/engine/dbos.py: Engine._workflows": "the same",
    "cortex/engine/leases.py: LocalRecovery._settled": "a number for each process that died beside this one",
    "cortex/engine/relay.py: RelayHub._listeners": "the topics, registered at the start",
    "cortex/integrations/documents/docx.py: _Styles.depths": "of one document",
    "cortex/integrations/documents/mail.py: _Reading.unread": "of one letter",
    "cortex/integrations/documents/mail.py: _Said._runs": "of one letter",
    "cortex/integrations/documents/pages.py: Pages._blocks": "of one document",
    "cortex/integrations/foreign/readers/chats.py: _Tally.counts": "of one file, in a process of its own",
    "cortex/integrations/foreign/readers/chats.py: _Tally.examples": "the same",
    "cortex/integrations/mcp/listed.py: ToolPages._cursors": "of one listing, PAGES_MOST",
    "cortex/integrations/mcp/listed.py: ToolPages.tools": "of one listing, TOOLS_MOST",
    "cortex/integrations/mcp/results.py: _Parts.lines": "of one result",
    "cortex/integrations/process.py: _Capture._head": "of one process, as many bytes as are kept of what it prints",
    "cortex/integrations/quota.py: Quotas._watched": "the folders of one process",
    "cortex/integrations/sentences.py: Sentences._kept": "the texts of tools; KEPT_MAX go over to the next start",
    "cortex/integrations/sentences.py: Sentences._late": "its two pools",
    "cortex/providers/call_pieces.py: CallPieces._at_index": "of one answer",
    "cortex/providers/call_pieces.py: CallPieces._by_id": "of one answer",
    "cortex/providers/call_pieces.py: CallPieces._calls": "of one answer",
    "cortex/providers/chat.py: ChatReader._fields": "of one answer",
    "cortex/providers/chat.py: ChatReader._thought": "of one answer",
    "cortex/providers/heard.py: HeardAnswer._raw": "of one answer",
    "cortex/providers/heard.py: HeardAnswer._thought": "of one answer",
    "cortex/providers/marks.py: ReasoningMarks._raw": "of one answer",
    "cortex/providers/messages.py: MessagesReader._blocks": "of one answer",
    "cortex/providers/messages.py: MessagesReader._inputs": "of one answer",
    "cortex/providers/messages.py: MessagesReader._usage": "of one answer",
    "cortex/providers/responses.py: ResponsesReader._items": "of one answer",
    "cortex/providers/responses.py: ResponsesReader._texts": "of one answer",
    "cortex/selection/index/documents.py: TermNumbers.more": "the words of tools, which indexes of one line share",
    "cortex/services/api/answers.py: Voice._shown": "of one answer",
    "cortex/services/api/ollama_requests.py: _Messages.made": "of one request",
    "cortex/services/chat/streams.py: OpenStreams.ended": "a number for each person whose access ended",
    "cortex/services/chat/transcript.py: Transcript._context_tokens": "of one conversation while its page is made",
    "cortex/services/jobs/alarm.py: Alarm._kinds": "the kinds of alarms, registered at the start",
    "cortex/services/models/crowd.py: Crowd._places": "three numbers for each model that somebody asked",
    "cortex/services/models/second_shape.py: Shapes.pending": "of one request, SHAPES_MOST",
    "cortex/services/models/server_looks.py: ServerLooks._places": "a look for each model that somebody set up",
    "cortex/services/models/store.py: LastGood._kept": "a version for each person",
    "cortex/services/notices/channels.py: Channels._open": "the channels",
    "cortex/services/notices/push_keys.py: PushKeys._public": "the keys of this server, two at a time",
    "cortex/services/tools/front_matters.py: UserFrontMatters._known": "of one look at a person's skills",
    "cortex/services/tools/plugins.py: Plugins._loaded": "the packages that are installed",
    "cortex/storage/db.py: a cache within _opener": "the repositories of one transaction",
    "cortex/storage/messages.py: _adding": "two at most: for PostgreSQL, and for SQLite",
    "cortex/storage/repository.py: selected": "the values and tables of the program",
    "cortex/toolkit/context.py: Ctx.private_looks": "of one call",
    "cortex/toolkit/context.py: Ctx.undo_notes": "of one call",
    "web/response_form.py: ResponseForm._done": "of one answer",
}


@dataclass
class Holder:
    """A container, by how it is called where it is used, and what is done to it."""

    name: str
    grows: bool = False
    ends: bool = False


def unbounded(text: str) -> list[str]:
    """Return the names of what grows without a bound in this module's text."""
    tree = ast.parse(text)
    found = [*_caches(tree), *_of_module(tree)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found += _of_class(node)
    return sorted(set(found))


# --- functions that remember ---------------------------------------------------------------------------------------


def _caches(tree: ast.Module) -> Iterator[str]:
    """Each use of a cache that may hold any number of answers; one of a function that takes nothing holds one."""
    named = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        for alias in node.names
        if alias.name in CACHES
    }
    spared: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                spared.update(map(id, ast.walk(mark)))
                if _is_endless(mark, named) and _takes(node):
                    yield node.name
    within = {
        id(one): made.name
        for made in ast.walk(tree)
        if isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef)
        for one in ast.walk(made)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.Name | ast.Attribute) and id(node) not in spared:
            is_endless = _is_endless(node, named)
            if is_endless or (isinstance(node, ast.Call) and _called(node.func, named) == "lru_cache"):
                spared |= {id(one) for one in ast.walk(node)} - {id(node)}
            if is_endless:
                yield f"a cache within {within.get(id(node), 'the module')}"


def _is_endless(node: ast.expr, named: dict[str, str]) -> bool:
    match _called(node.func if isinstance(node, ast.Call) else node, named):
        case "cache":
            return True
        case "lru_cache":
            if not isinstance(node, ast.Call):
                return False  # 128
            sizes = [*node.args[:1], *(word.value for word in node.keywords if word.arg in ("maxsize", None))]
            return any(isinstance(size, ast.Constant) and size.value is None for size in sizes)
        case _:
            return False


def _called(node: ast.expr, named: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "functools":
        return node.attr
    return named.get(node.id, "") if isinstance(node, ast.Name) else ""


def _takes(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = node.args
    return bool(given.args or given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg)


# --- containers ----------------------------------------------------------------------------------------------------


def _of_module(tree: ast.Module) -> Iterator[str]:
    """Containers of the module that its functions put things into, and take nothing out of."""
    holders = {name: Holder(name) for name, value in _assigned(tree.body) if _is_container(value)}
    inside = [one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    _look(inside, holders, lambda node: node.id if isinstance(node, ast.Name) else "")
    yield from (one.name for one in holders.values() if one.grows and not one.ends)


def _of_class(made: ast.ClassDef) -> Iterator[str]:
    """The same of an object's own containers: those it begins with, as a field or in `__init__`."""
    own = [*_assigned(made.body)]
    methods = [one for one in made.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    for method in methods:
        if method.name in ("__init__", "__post_init__"):
            own += [(f"self.{name}", value) for name, value in _assigned(list(ast.walk(method)), of="self")]
    holders = {name.removeprefix("self."): Holder(name) for name, value in own if _is_container(value)}

    def of_self(node: ast.expr) -> str:
        is_own = (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        )
        return node.attr if is_own and isinstance(node, ast.Attribute) else ""

    _look([one for one in methods if one.name not in ("__init__", "__post_init__")], holders, of_self)
    yield from (f"{made.name}.{name}" for name, one in holders.items() if one.grows and not one.ends)


def _assigned(body: Sequence[ast.AST], of: str = "") -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is None:
            continue
        for target in targets:
            if not of and isinstance(target, ast.Name):
                yield target.id, value
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == of:
                yield target.attr, value


def _is_container(value: ast.expr) -> bool:
    """Tell whether it begins empty, to be filled, and knows no bound itself."""
    if isinstance(value, ast.Dict | ast.List | ast.Set):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    name = _plain(value.func)
    if name == "field":
        made = next((word.value for word in value.keywords if word.arg in ("default_factory", "default")), None)
        return made is not None and (
            _plain(made) in MADE or (isinstance(made, ast.Lambda) and _is_container(made.body))
        )
    if name == "deque":
        return len(value.args) < 2 and not any(word.arg == "maxlen" for word in value.keywords)
    return name in MADE and (name == "defaultdict" or not value.args)


def _plain(node: ast.expr) -> str:
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _look(bodies: Sequence[ast.AST], holders: dict[str, Holder], called: Callable[[ast.expr], str]) -> None:
    """Note what these bodies do to the containers."""

    def of(node: ast.expr) -> Holder | None:
        return holders.get(called(node))

    for node in (one for body in bodies for one in ast.walk(body)) if holders else ():
        for over in filter(None, map(of, _ended(node))):
            over.ends = True
        match node:
            case ast.Call(func=ast.Attribute(attr=act, value=value)) if holder := of(value):
                holder.grows |= act in GROWS
            case ast.Assign(targets=targets):
                for target in targets:
                    for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                        _put(one, of)
            case ast.AugAssign(target=target, op=op):
                _put(target, of, is_less=isinstance(op, ast.Sub | ast.BitAnd))


def _ended(node: ast.AST) -> Iterator[ast.expr]:
    """What this takes something out of, or counts to see whether it is full; a method that is handed on is called."""
    match node:
        case ast.Attribute(attr=act, value=value) if act in SHRINKS:
            yield value
        case ast.Delete(targets=targets):
            yield from (target.value for target in targets if isinstance(target, ast.Subscript))
        case ast.Compare():
            for one in ast.walk(node):
                if isinstance(one, ast.Call) and _plain(one.func) == "len":
                    yield from one.args


def _put(target: ast.expr, of: Callable[[ast.expr], Holder | None], *, is_less: bool | None = None) -> None:
    whole = of(target)
    if whole is not None:  # made anew, or more of it
        whole.grows |= is_less is False
        whole.ends |= is_less is not False
    if isinstance(target, ast.Subscript) and (holder := of(target.value)):
        is_whole = isinstance(target.slice, ast.Slice)
        holder.ends |= is_whole
        holder.grows |= not is_whole


# --- the tests -----------------------------------------------------------------------------------------------------


def _kept() -> dict[str, list[str]]:
    files = sorted(path for top in ("cortex", "web") for path in (ROOT / top).rglob("*.py"))
    found = {str(path.relative_to(ROOT)): unbounded(path.read_text(encoding="utf-8")) for path in files}
    return {file: names for file, names in found.items() if names}


def test_what_a_daemon_keeps_has_a_bound_or_a_reason() -> None:
    found = {f"{file}: {name}" for file, names in _kept().items() for name in names}
    assert found - EXCUSES.keys() == set(), "bound them, or say what bounds them"
    assert EXCUSES.keys() - found == set(), "these need no excuse any more"


@pytest.mark.parametrize(
    "text",
    [
        "from functools import cache\n@cache\ndef of(name): ...",
        "import functools\n@functools.cache\ndef of(*names): ...",
        "from functools import lru_cache as kept\n@kept(maxsize=None)\ndef of(name): ...",
        "from functools import lru_cache\nof = lru_cache(None)(make)",
        "import functools\ndef keeper(make): return functools.cache(lambda one: make(one))",
        "_kept = {}\ndef of(name): _kept[name] = 1",
        "_kept: dict[str, int] = dict()\ndef of(name): return _kept.setdefault(name, 1)",
        "_kept = set()\ndef of(name): _kept.add(name)",
        "_kept = []\ndef of(name):\n    global _kept\n    _kept += [name]",
        "class A:\n    def __init__(self): self._kept = {}\n    def of(self, name): self._kept[name] = 1",
        "class A:\n    kept: dict = field(default_factory=dict)\n    def of(self, name): self.kept[name] = 1",
        "class A:\n    def __init__(self): self._kept = deque()\n    def of(self, name): self._kept.append(name)",
    ],
)
def test_what_grows_without_a_bound_is_found(text: str) -> None:
    assert unbounded(text)


@pytest.mark.parametrize(
    "text",
    [
        "from functools import cache\n@cache\ndef only(): ...",
        "from functools import lru_cache\n@lru_cache(maxsize=16)\ndef of(name): ...",
        "from functools import lru_cache\nof = lru_cache(maxsize=16)(make)",
        "_fixed = {}\n_fixed['a'] = 1",
        "_kept = {}\ndef of(name):\n    _kept[name] = 1\n    _kept.pop(next(iter(_kept)))",
        "_kept = []\ndef of(name): _kept[:] = [name]",
        "_kept = WeakSet()\ndef of(name): _kept.add(name)",
        "class A:\n    def __init__(self): self._kept = deque([], 4)\n    def of(self, name): self._kept.append(name)",
        "class A:\n    def __init__(self): self._kept = {}\n    def of(self, name): self._kept = {name: 1}",
    ],
)
def test_what_has_a_bound_is_left_alone(text: str) -> None:
    assert unbounded(text) == []
