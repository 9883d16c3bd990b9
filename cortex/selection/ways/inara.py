"""Cortex-Inara: keyword categories of the message and the assistant's last turn, their union within what is permitted.

Plain `contains` on lower-cased text, as this way has it: "light" is found in "flight". That is measured, not mended.
"""

import tomllib
from pathlib import Path

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput

# Category -> its `words`, any of which brings all of its `tools`.
CATEGORIES: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
HOMES = {
    tool: [name for name, row in CATEGORIES.items() if tool in row["tools"]]
    for each in CATEGORIES.values()
    for tool in each["tools"]
}


@stage("categories by the keywords of the message")
def keywords(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the tools of the activated categories, in registry order; nothing matched means nothing sent."""
    said = f"{given.message}\n{given.past[-1].assistant if given.past else ''}".lower()
    met = {name: next((word for word in row["words"] if word in said), "") for name, row in CATEGORIES.items()}
    chances: dict[str, Vote] = {}
    dropped: dict[str, Vote] = {}
    for entry in draft.rights.business:
        homes = HOMES.get(entry.name, [])
        word = next((met[name] for name in homes if met[name]), "")
        if word:
            chances[entry.name] = Vote(stage="keywords", p=1.0, why=f'the keyword "{word}" was said')
        else:
            why = f"no keyword of {' or '.join(homes)} was said" if homes else "no category of keywords holds it"
            dropped[entry.name] = Vote(stage="keywords", p=0.0, why=why)
    tokens = sum(index.entries[name].tokens_full for name in chances)
    return replace(
        draft,
        chances=chances,
        dropped=dropped,
        threshold=1.0,
        wanted=tuple(chances),
        labels={"estimate": f"{tokens} tokens of tools"},
    )
