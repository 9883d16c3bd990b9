"""Ora: core tools and what was discovered in full, the rest as a line each; and how a discovery ranks them.

Scores: exact 1.0, substring 0.97, shared keywords 0.82 + 0.15 x share, domain 0.78, spelt alike 0.9; below them BM25
over name, description and parameter names, with likeness and domain.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache

from msgspec.structs import replace

from cortex.base import spelling
from cortex.selection.index.index import Index
from cortex.selection.index.search import Bm25
from cortex.selection.plan.draft import BY_YOU, PlanDraft, Vote
from cortex.selection.registry.catalog import CatalogText, quoted
from cortex.selection.stage import stage
from cortex.selection.types import SNAPSHOTS_KEPT, PlanInput, RoleView, Snapshot, ToolEntry
from cortex.selection.votes.ranking import ToolHit
from cortex.selection.words import talk, text

DISCOVERY = "tools_discover"
CORE_TOOLS, FIRST_BLOCK_SHARE = 5, 0.45
CALLS_A_TURN = 3
EXACT, SUBSTRING, WORDS, WORDS_SHARE, DOMAIN, ALIKE = 1.0, 0.97, 0.82, 0.15, 0.78, 0.9
ALIKE_LEAST, MENDED_LEAST, MENDED_LETTERS, SUBSTRING_LETTERS = 0.93, 0.85, 4, 3
ALIKE_WORTH, DOMAIN_WORTH = 0.35, 0.1
LOWEST, HIGHEST = 0.05, 0.79
HEAD, HEAD_TOKENS = "Deferred tools by domain; tools_discover brings one in full:", 14
DEFERRED = Vote(stage="deferred", p=0.0, why="deferred: a line in the list until tools_discover finds it")
_USUAL = ("web_search", "task_list", "task_create", "session_search", "file_read")
_CORE_BY_ROLE = {
    "coder": ("file_read", "file_list", "file_grep", "file_write", "git_status"),
    "research": ("web_search", "web_read", "http_fetch"),
}


@stage("core tools in full, a line for each other", speaks_as=("core",))
def deferred(given: PlanInput, index: Index, draft: PlanDraft, *, core: tuple[str, ...] = ()) -> PlanDraft:
    """The draft with discovery, core, found and wished tools in full, which last, and the list of the others.

    Scores nothing: the model looks for what it needs. `core`: in place of what the role has as its core.
    """
    business, open_to = draft.rights.business, draft.rights.names
    ways = tuple(entry for entry in draft.rights.metas if entry.name == DISCOVERY)
    core = tuple(name for name in core if name in open_to) or _core(given.role, business, ways)
    known = dict.fromkeys((*given.memory.grown_by(given.recipe), *given.found))
    found = tuple(name for name in known if name in open_to and name not in core)
    wished = tuple(name for name in given.always if name in open_to and name not in core)
    way = tuple(entry.name for entry in ways) if len(business) > len(core) else ()
    rest = [entry for entry in business if entry.name not in {*core, *wished, *found}]
    return replace(
        draft,
        pins={
            **dict.fromkeys(way, Vote(stage="deferred", p=0.0, why="the way to the deferred tools")),
            **dict.fromkeys(core, Vote(stage="core", p=0.0, why="core: used on nearly every turn")),
            **dict.fromkeys(found, Vote(stage="deferred", p=0.0, why="found in this conversation")),
            **dict.fromkeys(wished, BY_YOU),
        },
        wanted=tuple(dict.fromkeys((*way, *core, *wished, *found))),
        dropped=dict.fromkeys((entry.name for entry in rest), DEFERRED),
        threshold=0.0,
        listing=_listing(rest, [domain.name for domain in given.snapshot.domains]),
        grown=found,
    )


def _core(role: RoleView, entries: Sequence[ToolEntry], ways: Sequence[ToolEntry]) -> tuple[str, ...]:
    """The tools used on nearly every turn: the role's own first, then the usual ones of its name, at most five.

    Only as many as keep the first block, `ways` included, within 45 % of all permitted schemas.
    """
    own = [entry.name for entry in entries if entry.is_core or {entry.name, entry.category} & set(role.core)]
    allowed = {entry.name: entry.tokens_full for entry in entries}
    room = FIRST_BLOCK_SHARE * sum(allowed.values()) - sum(entry.tokens_full for entry in ways)
    chosen: list[str] = []
    for name in dict.fromkeys((*own, *_CORE_BY_ROLE.get(role.name, _USUAL))):
        if name in allowed and len(chosen) < CORE_TOOLS and allowed[name] <= room:
            chosen.append(name)
            room -= allowed[name]
    return tuple(chosen)


def _listing(entries: Sequence[ToolEntry], domains: Sequence[str]) -> CatalogText:
    """One line a deferred tool, by domain; empty where nothing is deferred. The same tools give the same bytes."""
    members: dict[str, list[ToolEntry]] = {}
    for entry in entries:
        members.setdefault(entry.category, []).append(entry)
    rows, tokens = [HEAD], HEAD_TOKENS
    for name in dict.fromkeys((*(name for name in domains if name in members), *sorted(members))):
        rows.append(f"{quoted(name)}:")
        rows += [f"- {quoted(entry.name)}: {quoted(entry.summary)}" for entry in members[name]]
        tokens += 4 + sum(entry.tokens_line + 2 for entry in members[name])
    return CatalogText(text="\n".join(rows), tokens=tokens) if members else CatalogText()


# --- discovery ----------------------------------------------------------------------------------------------------


class _Shelf:
    """A snapshot as it is searched: its tools with their names and the words in them, domains, all words."""

    def __init__(self, snapshot: Snapshot) -> None:
        entries = [entry for entry in snapshot.entries if not entry.is_meta]
        self.rows = [(entry, text.normal(entry.name), frozenset(_terms(entry.name))) for entry in entries]
        self.domains = {entry.category: frozenset(_terms(entry.category)) for entry in entries}
        said = (" ".join((e.name, e.full.description, *e.full.parameters.get("properties", {}))) for e in entries)
        bags = [Counter(_terms(each)) for each in said]
        self.texts = Bm25.of(bags)
        self.terms = sorted({term for told in (*bags, *self.domains.values()) for term in told})


_shelf_of = lru_cache(maxsize=SNAPSHOTS_KEPT)(_Shelf)


def rank(query: str, snapshot: Snapshot, names: Collection[str], most: int) -> tuple[ToolHit, ...]:
    """The named tools that fit, best first: by name and keywords, then, in the places left free, by BM25."""
    shelf, asked, allowed = _shelf_of(snapshot), text.normal(query).replace(" ", "_"), frozenset(names)
    if not asked:
        return ()
    said = _mended_terms(query, shelf.terms)
    met = frozenset(said)
    homes = frozenset(name for name, own in shelf.domains.items() if own and own <= met)
    fits: list[tuple[bool, float, float, str, str]] = []  # of equals the one that is spelt more alike comes first
    left: list[tuple[float, float, str]] = []
    scores = shelf.texts.scores(dict.fromkeys(said, 1.0))
    for slot, (entry, own, words) in enumerate(shelf.rows):
        worth = scores.get(slot, 0.0)
        if entry.name in allowed:
            alike, shared = spelling.likeness(asked, own), len(words & met) / max(1, len(met))
            score, how = _by_name(own, asked, shared, alike, is_home=entry.category in homes)
            if score:
                fits.append((False, -score, -alike, entry.name, how))
            elif worth > 0:
                left.append((worth, alike, entry.name))
    best = max(left, default=(1.0,))[0]
    for worth, alike, name in left:  # none is of a domain that was named: that is a score by itself
        share = (worth / best + ALIKE_WORTH * alike) / (1 + ALIKE_WORTH + DOMAIN_WORTH)
        fits.append((True, -round(LOWEST + (HIGHEST - LOWEST) * share, 4), -alike, name, "its description"))
    return tuple(ToolHit(name=name, score=-score, how=how) for _, score, _, name, how in sorted(fits)[:most])


def _by_name(own: str, asked: str, shared: float, alike: float, *, is_home: bool) -> tuple[float, str]:
    """The best score of the deterministic tier, 0 where nothing fits, and how the tool was found."""
    words = round(WORDS + WORDS_SHARE * shared, 4) if shared else 0.0
    if asked == own:
        return EXACT, "its name"
    if words < SUBSTRING and (own in asked or asked in own) and min(len(own), len(asked)) >= SUBSTRING_LETTERS:
        return SUBSTRING, "part of its name"
    if alike >= ALIKE_LEAST and words < ALIKE:
        return ALIKE, "spelt alike"
    return (words, "shared words") if words else (DOMAIN * is_home, "its domain")


def _mended_terms(query: str, known: Sequence[str]) -> tuple[str, ...]:
    """The query's terms, mistyped or misheard ones mended; common ones count only where there is nothing else."""
    terms = dict.fromkeys(_terms(query))
    rare = [term for term in terms if term not in talk.common_terms()]
    mended = (
        spelling.closest(term, known, MENDED_LEAST) if len(term) >= MENDED_LETTERS else "" for term in rare or terms
    )
    return tuple(dict.fromkeys(found or term for found, term in zip(mended, rare or terms, strict=True)))


def _terms(told: str) -> tuple[str, ...]:
    return tuple(text.stem(word) for word in text.words(told.replace("_", " ").replace("-", " ")))
