"""The card of web search, which the server's settings set up."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind

LACKS = "Choose SearXNG, Brave or DuckDuckGo in the settings."


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    settings = host.settings
    return IntegrationKind(
        name="web_search",
        title="Web search",
        about="Searches the web with your own SearXNG, Brave or DuckDuckGo.",
        order=60,
        ports=("WebSearch",),
        settings="search",
        lacks=lambda: "" if settings.searxng_url or settings.brave_api_key or settings.ddgs else LACKS,
    )
