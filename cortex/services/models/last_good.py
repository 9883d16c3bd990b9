"""A copy of each `model_registry.json` that could be read, and the way back to it when a later one cannot.

Kept beside the file, for a slip of the pen stays over a restart. `services/models/models.py` calls it.
"""

import logging

from cortex.base.errors import CortexError, NotFound
from cortex.services.models.files import FILE, read
from cortex.storage.home import HomeFile, Homes

GOOD = "model_registry.good.json"
BROKEN = "model_registry.broken.json"

log = logging.getLogger(__name__)


class LastGood:
    """The copies of all people."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self._kept: dict[str, str] = {}  # user id -> version of the file that its copy was made of

    async def keep(self, user_id: str, found: HomeFile) -> None:
        """Copy a file that could be read, unless it was. A disk that takes no copy keeps nobody from working."""
        if self._kept.get(user_id) == found.version:
            return
        self._kept[user_id] = found.version
        try:
            home = self._homes.home_of(user_id)
            if await home.version(GOOD) != found.version:
                await home.write(GOOD, found.text)
        except (CortexError, OSError) as error:
            log.warning("models: no copy of %s is kept: %s", FILE, error)

    async def is_there(self, user_id: str) -> bool:
        """Tell whether there is a copy that can be read."""
        try:
            return bool(read((await self._homes.home_of(user_id).read(GOOD)).text).models)
        except CortexError:
            return False

    async def restore(self, user_id: str) -> None:
        """Put the copy in place of what stands there, which is kept as `BROKEN`. NotFound when there is none."""
        if not await self.is_there(user_id):
            raise NotFound(f"There is no earlier {FILE} to go back to.")
        home = self._homes.home_of(user_id)
        good = await home.read(GOOD)
        await home.set_aside(FILE, BROKEN)
        await home.write(FILE, good.text)
