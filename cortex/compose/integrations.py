"""The outside systems that this version can be set up with, in the order of the page."""

from collections.abc import Callable

from cortex.base import scan
from cortex.base.settings import Settings
from cortex.integrations.aether import AetherForm, AetherServer
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.integrations.aether_db.form import AetherDbForm
from cortex.integrations.aider.form import AiderForm
from cortex.integrations.aider.system import AiderHost, AiderSystem
from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.integrations.mcp.form import McpForm
from cortex.integrations.mcp.system import McpHost, McpSystem
from cortex.integrations.talk import TalkForm, TalkServer
from cortex.ports.mcp import FAMILY, port_of
from cortex.services.integrations.journals import AETHER
from cortex.services.integrations.kinds import IntegrationKind
from cortex.services.integrations.mcp import PAGE as MCP_PAGE
from cortex.services.integrations.mcp_logins import BESIDE
from cortex.services.integrations.talk import KIND as TALK
from cortex.services.notices.channels import Channels

NO_SEARCH = "Set CORTEX_SEARXNG_URL, CORTEX_BRAVE_API_KEY or CORTEX_DDGS, and restart Cortex."
SEARCH_LINES = (
    "# one of these three",
    "CORTEX_SEARXNG_URL=https://searxng.example.org",
    "CORTEX_BRAVE_API_KEY=your-key",
    "CORTEX_DDGS=true",
)
MAIL_LINES = (
    "CORTEX_SMTP_HOST=mail.example.org",
    "CORTEX_SMTP_FROM=cortex@example.org",
    "# where the mail server asks for a login",
    "CORTEX_SMTP_USER=cortex@example.org",
    "CORTEX_SMTP_PASSWORD=your-password",
)
PUSH_LINES = ("CORTEX_PUSH_SUBJECT=mailto:you@example.org",)

_AETHER = IntegrationKind(
    name=AETHER,
    title="Aether server",
    about="Keeps everybody's journals on another server instead of here.",
    ports=(),
    form=AetherForm,
    open=lambda form, _: AetherServer(form),
    place=("address",),
    has_roles=False,
    note="docs/aether.md says what such a server must do. Journals written here before stay here and are "
    "shown again when the server is switched off. Access is per person, not per role: all journals of a "
    "person are in one place.",
)

_TALK = IntegrationKind(
    name=TALK,
    title="Nextcloud Talk",
    about="Reads and sends messages in Nextcloud Talk rooms, and delivers notifications there.",
    ports=("Talk",),
    form=TalkForm,
    open=lambda form, _: TalkServer(form),
    place=("address", "user", "ca"),
    note="Give Cortex its own Nextcloud account and invite it to the rooms it should use. Everybody with "
    "access to this integration can read and write in all of them.",
)


def kinds(
    settings: Settings,
    channels: Channels,
    is_boxed: Callable[[], bool],
    mcp: McpHost,
    aider: AiderHost,
    no_updates: Callable[[], str],
) -> tuple[IntegrationKind, ...]:
    """Every kind. is_boxed: whether the sandbox works on this machine. mcp, aider: what it gives to those.

    no_updates: why there are none.
    """
    return (
        _home_assistant(),
        _aether_db(),
        _AETHER,
        _TALK,
        _mcp(mcp),
        _web_search(settings),
        IntegrationKind(
            name="email",
            title="E-mail",
            about="Sends e-mails: notifications, and what people ask Cortex to send.",
            ports=("Mail",),
            variables=("CORTEX_SMTP_HOST", "CORTEX_SMTP_FROM", "CORTEX_SMTP_USER", "CORTEX_SMTP_PASSWORD"),
            lacks=lambda: channels.lacks("email"),
            lines=MAIL_LINES,
        ),
        IntegrationKind(
            name="push",
            title="Web push",
            about="Notifies browsers and phones that people add under Devices.",
            ports=("Push",),
            variables=("CORTEX_PUSH_SUBJECT", "CORTEX_PUBLIC_URL"),
            lacks=lambda: channels.lacks("web_push"),
            lines=PUSH_LINES,
        ),
        IntegrationKind(
            name="sandbox",
            title="Sandbox",
            about="Isolates what runs on this machine: shell commands and git.",
            ports=("Sandbox", "Git"),
            lacks=lambda: "" if is_boxed() else "No sandbox works here. Install bubblewrap and restart Cortex.",
        ),
        _coding(aider),
        IntegrationKind(
            name="upkeep",
            title="Update",
            about="Updates Cortex when an admin asks for it in a chat or runs `cortex update`.",
            ports=("Upkeep",),
            lacks=no_updates,
        ),
    )


def _web_search(settings: Settings) -> IntegrationKind:
    has_search = settings.searxng_url or settings.brave_api_key or settings.ddgs
    return IntegrationKind(
        name="web_search",
        title="Web search",
        about="Searches the web with your own SearXNG, Brave or DuckDuckGo.",
        ports=("WebSearch",),
        variables=("CORTEX_SEARXNG_URL", "CORTEX_BRAVE_API_KEY", "CORTEX_DDGS"),
        lacks=lambda: "" if has_search else NO_SEARCH,
        lines=SEARCH_LINES,
    )


def _home_assistant() -> IntegrationKind:
    return IntegrationKind(
        name="home_assistant",
        title="Home Assistant",
        about="Reads and controls your home: lights, heating, music, blinds, locks, sensors and their history.",
        ports=("HomeAssistant",),
        form=HomeAssistantForm,
        open=lambda form, _: scan.load("cortex.integrations.home_assistant.system").HomeAssistantSystem(form),
        place=("address", "verify_certificate", "ca"),
        search=_homes_in_network,
        people=HomeAssistantForm.people,
    )


def _coding(host: AiderHost) -> IntegrationKind:
    return IntegrationKind(
        name="coding",
        title="Coding agent",
        about="Changes code in clones of your repositories with aider. You review each diff before it is merged.",
        note="Admins only. It runs in the sandbox without network access: Cortex calls the model for it, "
        "within the budget of the person who started it.",
        ports=("CodingAgent", "AllowedFolders"),
        form=AiderForm,
        open=lambda form, _: AiderSystem(form, host),
        more="/admin/coding",
    )


def _mcp(host: McpHost) -> IntegrationKind:
    return IntegrationKind(
        name=FAMILY,
        title="MCP server",
        about="Adds tools from other makers (Model Context Protocol): a program on this machine, or an address.",
        note="Each of its tools is off until you allow it on its tools page, and off again when the server "
        "changes its description. Programs run in the sandbox without network access unless you allow "
        "it.",
        ports=(),
        form=McpForm,
        open=lambda form, name: McpSystem(form, name, host),
        place=("address", "command", "has_network"),
        has_many=True,
        port_of=port_of,
        more=MCP_PAGE,
        beside=(BESIDE,),
    )


async def _homes_in_network() -> str:
    return str(await scan.load("cortex.integrations.home_assistant.discovery").found_in_network())


def _aether_db() -> IntegrationKind:
    return IntegrationKind(
        name="aether_db",
        title="Aether DB",
        about="Reads a MariaDB or MySQL database, and never changes it.",
        note="Needs an account with only SELECT and SHOW VIEW. docs/database.md shows how to create one.",
        ports=("AetherDatabase",),
        form=AetherDbForm,
        open=lambda form, _: ReadOnlyDatabase(form.access),
        place=("host", "port", "user", "tls", "ca"),
        has_many=True,
    )
