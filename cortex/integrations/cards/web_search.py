"""The card of web search, which the server's settings set up."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind

LINES = (
    "# one of these three",
    "CORTEX_SEARXNG_URL=https://searxng.example.org",
    "CORTEX_BRAVE_API_KEY=your-key",
    "CORTEX_DDGS=true",
)


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    settings = host.settings
    has_search = settings.searxng_url or settings.brave_api_key or settings.ddgs
    lacks = "Set CORTEX_SEARXNG_URL, CORTEX_BRAVE_API_KEY or CORTEX_DDGS, and restart Cortex."
    return IntegrationKind(
        name="web_search",
        title="Web search",
        about="Searches the web with your own SearXNG, Brave or DuckDuckGo.",
        order=60,
        ports=("WebSearch",),
        variables=("CORTEX_SEARXNG_URL", "CORTEX_BRAVE_API_KEY", "CORTEX_DDGS"),
        lacks=lambda: "" if has_search else lacks,
        lines=LINES,
    )
