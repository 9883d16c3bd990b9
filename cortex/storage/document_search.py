"""Finds pages of a person's documents by their words, the best first. As `search.py` finds messages, but ranked.

A page need not have all words: each weighs the more, the fewer pages have it. SQLite ranks by BM25 (FTS5); on
PostgreSQL, whose index knows no such thing, a word weighs by the same count.
"""

import math
from collections.abc import Sequence

from sqlalchemy import ColumnElement, RowMapping, Select, Subquery, column, func, select, table, text

from cortex.ports.documents import DocumentHit
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import DocumentPageTable, DocumentTable
from cortex.storage.search import InOrder
from cortex.storage.words import owner_word, passage, stem, terms

WHOLE = 2  # so short a word is found as it is, not as the beginning of others
PASSAGE_CHARACTERS = 300
CANDIDATES, WITHIN = 200, 5_000  # pages that are ranked: of all files; where those of a folder are looked for
_INDEX = table("document_index", column("rowid"), column("rank"))
_VECTOR = "array_to_tsvector(string_to_array(document_pages.words, ' '))"


class DocumentSearchRepository(Repository):
    """Searches one user's documents."""

    @reading
    async def pages_matching(self, query: str, path: str = "", limit: int = 10) -> Sequence[DocumentHit]:
        """The pages with the most and rarest words of the query; any text will do. `path`: a folder or file."""
        wanted = terms(query)
        if not wanted:
            return []
        ranking = select(DocumentPageTable.position).where(*self._within(path))
        if self._is_postgresql:
            ranking = await self._by_weight(ranking.join(DocumentTable), wanted, path)
        else:
            best = self._best(wanted, WITHIN if path else CANDIDATES)
            page, file = DocumentPageTable.__table__, DocumentTable.__table__
            found = InOrder(best, page, best.c.rowid == page.c.position)
            ranking = ranking.select_from(InOrder(found, file, file.c.id == page.c.document_id))
            ranking = ranking.order_by(best.c.rank, DocumentPageTable.position)
        # The texts are read of the best alone: no database carries those of all that match through its sorting.
        order = (await self.session.execute(ranking.limit(limit))).scalars().all()
        columns = (
            DocumentPageTable.position,
            DocumentPageTable.number,
            DocumentPageTable.title,
            DocumentPageTable.text,
        )
        pages = select(*columns, DocumentTable.path, DocumentTable.is_paged).join(DocumentTable)
        rows = (await self.session.execute(pages.where(DocumentPageTable.position.in_(order)))).mappings().all()
        return [_hit(row, wanted) for row in sorted(rows, key=lambda row: order.index(row["position"]))]

    def _best(self, wanted: list[str], most: int) -> Subquery:
        """The best pages by FTS5 alone, which is four times as fast as with a join (2026-11-24).

        The word of the owner is in each page, so that nobody else's are among the `most`.
        """
        needle = f'"{owner_word(self.owner_id)}" AND ({" OR ".join(map(_phrases, wanted))})'
        matching = text("document_index MATCH :needle").bindparams(needle=needle)
        return select(_INDEX.c.rowid, _INDEX.c.rank).where(matching).order_by(_INDEX.c.rank).limit(most).subquery()

    def _within(self, path: str) -> tuple[ColumnElement[bool], ...]:
        own = (DocumentPageTable.owner_id == self.owner_id, DocumentTable.deleted_at.is_(None))
        if not path:
            return own
        below = DocumentTable.path.startswith(f"{path}/", autoescape=True)
        return (*own, (DocumentTable.path == path) | below)

    async def _by_weight(self, ranking: Select[int], wanted: list[str], path: str) -> Select[int]:
        conditions = [f"({_VECTOR} @@ CAST(:term{place} AS tsquery))" for place in range(len(wanted))]
        needles = {f"term{place}": _needle(term) for place, term in enumerate(wanted)}
        matches = [
            text(condition).bindparams(**{name: needle})
            for condition, (name, needle) in zip(conditions, needles.items(), strict=True)
        ]
        any_of = text(f"{_VECTOR} @@ CAST(:any AS tsquery)").bindparams(any=" | ".join(needles.values()))
        counting = select(func.count(), *(func.count().filter(match) for match in matches))
        counting = counting.select_from(DocumentPageTable).join(DocumentTable).where(*self._within(path), any_of)
        total, *counts = (await self.session.execute(counting)).one()
        weights = [math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in counts]
        score = " + ".join(
            f"{weight:.6f} * CAST({one} AS int)" for weight, one in zip(weights, conditions, strict=True)
        )
        best_first = text(f"({score}) DESC").bindparams(**needles)
        return ranking.where(any_of).order_by(best_first, DocumentPageTable.position)


def _hit(row: RowMapping, wanted: list[str]) -> DocumentHit:
    return DocumentHit(
        path=row["path"],
        number=row["number"],
        title=row["title"],
        passage=passage(row["text"], wanted, PASSAGE_CHARACTERS),
        is_paged=row["is_paged"],
    )


# A term is letters and digits only (`words.py`), so quoting it is all the escaping that either language needs.
def _phrases(term: str) -> str:
    """The word itself and, so that it weighs twice, other forms of it."""
    if len(term) <= WHOLE:
        return f'"{term}"'
    return f'"{term}"* OR "{stem(term)}"*'


def _needle(term: str) -> str:
    return f"'{term}'" if len(term) <= WHOLE else f"'{stem(term)}':*"
