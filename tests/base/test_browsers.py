"""What a login is called in the lists of logins and devices."""

import pytest

from cortex.base.browsers import browser_name

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile Safari/604.1"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (CHROME, "Chrome on Linux"),
        (CHROME + " Edg/156.0", "Edge on Linux"),
        (SAFARI, "Safari on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Windows"),
        ("python-httpx/0.28.1", "python-httpx"),
        ("", ""),
    ],
    ids=["chrome", "edge", "phone", "firefox", "a program", "nothing"],
)
def test_a_browser_is_called_as_a_person_calls_it(agent: str, words: str) -> None:
    assert browser_name(agent) == words
