"""300 tools of ten MCP servers, set up by their pages as an admin does it: a first request, its tokens, memory."""

import html
import json
import re
import time
from contextlib import ExitStack
from pathlib import Path

from cortex.base.tokens import count as count_tokens
from cortex.base.tokens import minified
from tests import hostile_mcp
from tests.bench.figure import Bench, Figure
from tests.bench.houses import House, house, looks
from tests.bench.processes import add_model, ask
from tests.e2e.caller import Caller
from tests.mcp_house import listed
from tests.scripted_server import ScriptedServer, rule

SERVERS = 10
VERBS = ("list", "read", "make", "change", "drop", "find")
NOUNS = ("ticket", "invoice", "page", "branch", "sprint")
ASKED = ("hello", "change an invoice at maker0")
PAGES = ("/c/new", "/admin/mcp", "/admin/mcp/maker0", "/admin/tools")


def measure(bench: Bench) -> list[Figure]:
    """What they add: to set them up, to a message of either kind, to the pages that list them, to memory."""
    return [figure for kind in bench.databases for figure in _measured(bench, kind)]


def _measured(bench: Bench, kind: str) -> list[Figure]:
    count = bench.count(SERVERS)
    with ScriptedServer(rule("", "Hello there.")) as model, ExitStack() as stack:  # which calls no tool
        opened = stack.enter_context(house(bench, kind))
        ada = stack.enter_context(Caller(opened.door)).set_up()
        add_model(ada, model)
        ask(ada, "what can you do")  # what is loaded with the first
        before, before_mb = [_asked(opened, ada, model, text) for text in ASKED], opened.memory_mb()
        began_s, used_s = time.perf_counter(), opened.cpu_s()
        tools = _set_up(opened.door.home.parent, ada, count)
        took_s, used_s = time.perf_counter() - began_s, opened.cpu_s() - used_s
        how = f"{opened.name}, {tools:,} tools of {count} MCP servers"
        first, again = ([_asked(opened, ada, model, text) for text in ASKED] for _ in range(2))
        figures = [
            Figure(what="MCP tools, to set them up", value=took_s, unit="s", how=f"{how}; {used_s:.1f} s of processor"),
            Figure(what="MCP tools, memory they add", value=opened.memory_mb() - before_mb, unit="MB", how=how),
        ]
        for text, without, new, warm in zip(ASKED, before, first, again, strict=True):
            told = f"{how}; {without[0]:.0f} ms without them, {warm[0]:.0f} ms the second time"
            sent = f"of the first request; {without[1]:,} without them"
            figures += [
                Figure(what=f'MCP tools, CPU of the first "{text}"', value=new[0], unit="ms", how=told),
                Figure(what=f'MCP tools, tokens sent with "{text}"', value=new[1], unit="", how=sent),
            ]
        took = looks(ada, PAGES)
        return figures + [Figure(what=f"MCP tools, {path}", value=ms, unit="ms", how=how) for path, ms in took.items()]


def _asked(opened: House, ada: Caller, model: ScriptedServer, text: str) -> tuple[float, int]:
    """Milliseconds of processor for this message in a new chat, and the tokens of its first request."""
    used_s, before = opened.cpu_s(), len(model.log)
    ask(ada, text)
    used_s = opened.cpu_s() - used_s
    return used_s * 1000, count_tokens(minified(model.log[before].body))


def _set_up(folder: Path, ada: Caller, servers: int) -> int:
    """Paste them, allow what they need, find their tools and allow all of them; how many that are."""
    program, listing = folder / "mcp" / "server.py", folder / "mcp" / "listing.json"
    program.parent.mkdir()
    program.write_text(Path(hostile_mcp.__file__).read_text())
    tools = [listed(f"{verb}_{noun}", f"{verb} a {noun} in this system. " * 5) for verb in VERBS for noun in NOUNS]
    listing.write_text(json.dumps(tools))
    entry = {"command": "/usr/bin/python3", "args": [str(program), str(listing)]}
    names = [f"maker{number}" for number in range(servers)]
    ada.post("/admin/mcp", config=json.dumps({"mcpServers": dict.fromkeys(names, entry)}))
    needs = f"/admin/mcp/{','.join(names)}/needs"
    ada.post(needs, give=_values(ada, needs, "give"))
    count = 0
    for name in names:
        ada.post(f"/admin/mcp/{name}/look")
        shown = _values(ada, f"/admin/mcp/{name}", "shown")
        count += len(shown)  # with the one that reads its resources
        ada.post(f"/admin/mcp/{name}", shown=shown, allow=shown)
    return count


def _values(ada: Caller, path: str, name: str) -> list[str]:
    """What the boxes or hidden fields of this name hold."""
    tags = re.findall(rf'<input[^>]*name="{name}"[^>]*>', ada.get(path).text)
    return [html.unescape(value) for tag in tags for value in re.findall(r'value="([^"]*)"', tag)]
