"""The CSV files in which `ae_db_query` keeps large results, among a person's files: read, and thrown away when old."""

import logging
import re
from datetime import datetime

from msgspec import Struct

from cortex.base.errors import CortexError, NotFound
from cortex.storage.home import Home

FOLDER = "files/query-results"
NAME = re.compile(r"[0-9a-f]{12}\.csv")
KEPT_MOST = 200

log = logging.getLogger(__name__)


class QueryResults(Struct, frozen=True, kw_only=True):
    """Those of one person. What they put into the folder under names of their own is never touched."""

    home: Home

    async def read(self, name: str) -> str:
        """The CSV of this name; NotFound when there is none, or no more."""
        if not NAME.fullmatch(name):
            raise NotFound("This result does not exist.")
        return (await self.home.read(f"{FOLDER}/{name}")).text

    async def prune(self, before: datetime | None, most: int = KEPT_MOST) -> int:
        """Delete those from before then (None: however old they are), and all but the newest `most`; how many went."""
        found = [one for one in await self.home.list(FOLDER) if not one.is_folder and NAME.fullmatch(one.name)]
        newest_first = sorted(found, key=lambda one: one.changed_at, reverse=True)
        old = [one for at, one in enumerate(newest_first) if at >= most or (before and one.changed_at < before)]
        return sum([await self._remove(one.name) for one in old])

    async def _remove(self, name: str) -> bool:
        try:
            await self.home.remove(f"{FOLDER}/{name}")
        except (CortexError, OSError) as error:  # one that cannot go keeps no other
            log.warning("query results: %s could not be deleted: %s", name, error)
            return False
        return True
