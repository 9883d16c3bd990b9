"""DuckDuckGo by the `ddgs` library, for houses without SearXNG or a key. Heavy: loaded on first use, by `scan`."""

from ddgs import DDGS
from ddgs.exceptions import DDGSException

from cortex.base.errors import ToolFailed


def search(query: str, count: int, timeout_s: int) -> list[dict[str, str]]:
    """Rows with title, href and body; blocks, so call it in a thread. ToolFailed when the engine does not answer."""
    try:
        return [dict(row) for row in DDGS(timeout=timeout_s).text(query, max_results=count)]
    except DDGSException as error:
        raise ToolFailed(f"The search did not work: {error}.") from error
