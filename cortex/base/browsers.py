"""A browser's own name in words a person knows: `Chrome on Linux`. For lists of logins and devices; decides nothing."""

import re

# The first that is found names it: most browsers also claim to be the ones below them.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Vivaldi", "Vivaldi"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Chromium", "Chromium"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("Linux", "Linux"),
)


def browser_name(agent: str) -> str:
    """Name the browser and its system; for another program its own first word; "" when it said nothing."""
    browser = next((words for mark, words in _BROWSERS if mark in agent), "")
    system = next((words for mark, words in _SYSTEMS if mark in agent), "")
    if not browser:
        return re.split(r"[/\s]", agent.strip(), maxsplit=1)[0][:40]
    return f"{browser} on {system}" if system else browser
