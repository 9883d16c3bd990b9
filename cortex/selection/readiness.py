"""Has ready, ahead of the first message, what plans and searches over a snapshot stand on. Chooses nothing.

Called off the event loop, by what keeps a server's tools ready (`services/tools/readiness.py`).
"""

from cortex.selection.index import index_of
from cortex.selection.ranking import ranked
from cortex.selection.skill_search import rarity
from cortex.selection.types import Snapshot

ASKED = "what can you do"


def make_ready(snapshot: Snapshot) -> None:
    """Index the snapshot and search it once; seconds of a processor for 10,000 new tools, hardly any for a few."""
    index = index_of(snapshot)
    index.build()
    ranked(index, ASKED, index.names, 1)
    rarity(ASKED, snapshot)
