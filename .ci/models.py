"""Writes what `cortex/providers/servers.py` knows of each model server into `docs/models.md`: a part of `make docs`.

Prints the page with that part made anew; `--write` puts it there. Where `tests/model_servers/results.json` exists, what
each row passed stands there too: scene -> state (passes, fails or left out) -> row -> why.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cortex.providers.server_row import ServerRow
from cortex.providers.servers import OTHER, SERVERS

ROOT = Path(__file__).parent.parent
PAGE, RESULTS = ROOT / "docs" / "models.md", ROOT / "tests" / "model_servers" / "results.json"
BEGIN, END = "<!-- from here on: make docs -->\n", "<!-- to here: make docs -->\n"
ORDERS = {"any": "any", "turns": "in turns", "strict": "in turns, an answer behind each result"}
IDS = {"any": "any", "short": "40 characters", "safe": "64 plain characters", "nine": "9 letters and digits"}
CALLS = {"": "-", "pieces": "in pieces", "whole": "whole"}
PROTOCOLS = {"chat": "chat completions", "responses": "Responses", "messages": "Messages"}
STATES = {"passes": "✓", "fails": "**no**", "left out": "-"}
Cell = Mapping[str, str]


def cells_of(played: Mapping[str, Mapping[str, Mapping[str, str]]]) -> list[Cell]:
    """Every scene by every row, one cell each."""
    return [
        {"row": row, "scene": scene, "state": state, "why": why}
        for scene, states in played.items()
        for state, rows in states.items()
        for row, why in rows.items()
    ]


def page(text: str, cells: Sequence[Cell] = ()) -> str:
    """The page with its made part anew. ValueError where the marks of that part are gone."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name} has no part between {BEGIN.strip()} and {END.strip()}")
    return before + BEGIN + made(cells) + END + after


def made(cells: Sequence[Cell]) -> str:
    """The tables and what is to be known of each server."""
    rows = (*SERVERS, OTHER)
    passed = {row.id: _passed(cell for cell in cells if cell["row"] == row.id) for row in rows}
    head = ["server", "protocol", "speakers", "ids of calls", "calls come", "goes back unread", "cached tokens"]
    table = [[*_facts(row), *([passed[row.id]] if cells else [])] for row in rows]
    parts = [_table([*head, *(["scenes"] if cells else [])], table)]
    parts += [f"### {row.label}\n\n{_told(row)}" for row in rows]
    if cells:
        parts += ["## Scenes\n\n" + _scenes(cells)]
    return "\n" + "\n".join(parts) + "\n"


def _facts(row: ServerRow) -> list[str]:
    protocols = ", ".join(PROTOCOLS[one] for one in row.protocols)
    back = ", ".join(f"`{name}`" for name in row.goes_back) or "-"
    cached = ", ".join(f"`{name}`" for name in row.cached) or "-"
    return [row.label, protocols, ORDERS[row.order], IDS[row.call_ids], CALLS[row.calls], back, cached]


def _told(row: ServerRow) -> str:
    lists = ", ".join(f"`{path}`" for path in (*row.models_at, *row.more_at))
    facts = [
        row.note,
        f"Address: {f'`{row.base_url}`' if row.base_url else f'your own, such as `{row.example}`'}.",
        f"Models: {lists}, from the address on.",
        f"Longest answer: `{row.output_limit}`.",
        f"Never sent: {', '.join(f'`{name}`' for name in sorted(row.omits))}." if row.omits else "",
        f"Its refusals are known by their words: {', '.join(row.says)}." if row.says else "",
        f"Read {row.read}: {', '.join(f'<{source}>' for source in row.sources)}.",
    ]
    return " ".join(filter(None, facts)) + "\n"


def _passed(cells: Iterable[Cell]) -> str:
    states = [cell["state"] for cell in cells if cell["state"] != "left out"]
    return f"{states.count('passes')} of {len(states)}" if states else "-"


def _scenes(cells: Sequence[Cell]) -> str:
    """Every scene by every row, and why some are left out."""
    rows = list(dict.fromkeys(cell["row"] for cell in cells))
    scenes = list(dict.fromkeys(cell["scene"] for cell in cells))
    state = {(cell["scene"], cell["row"]): STATES[cell["state"]] for cell in cells}
    table = _table(
        ["scene", *rows],
        [[scene.replace("_", " "), *(state.get((scene, row), "-") for row in rows)] for scene in scenes],
    )
    left = sorted({(cell["why"], cell["row"], cell["scene"]) for cell in cells if cell["state"] == "left out"})
    reasons: dict[str, dict[str, list[str]]] = {}
    for why, row, scene in left:
        reasons.setdefault(why, {}).setdefault(row, []).append(scene.replace("_", " "))
    lines = [
        f"- {why}: " + "; ".join(f"{row} ({', '.join(names)})" for row, names in found.items())
        for why, found in reasons.items()
    ]
    return table + ("\nLeft out (-):\n\n" + "\n".join(lines) + "\n" if lines else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    """Print or write the page."""
    played = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    text = page(PAGE.read_text(encoding="utf-8"), cells_of(played))
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
