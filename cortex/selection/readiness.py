"""Has ready, ahead of the first message, what plans over a snapshot stand on. Chooses nothing.

Called off the event loop, by `services/tools/readiness.py`. What only a search needs is made at the first one, .04 s.
"""

from cortex.base import scan
from cortex.base.memory import give_back
from cortex.selection.index.index import index_of
from cortex.selection.index.skill_search import rarity
from cortex.selection.types import Snapshot
from cortex.selection.votes.evidence import learned

ASKED = "what can you do for me"


@scan.uncollected()
def make_ready(snapshot: Snapshot) -> None:
    """Index the snapshot and judge a text by it."""
    index = index_of(snapshot)
    index.build()
    learned(index, ASKED)
    rarity(ASKED)
    give_back()  # what building took, several times what stays
