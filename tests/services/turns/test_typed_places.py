"""What the gate takes for the user's own words about where something may go."""

import pytest

from cortex.services.turns.typed_places import typed_places


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("read https://Example.org/a?b=c", {"example.org"}),
        ("what is new on example.org today", {"example.org"}),
        ("what is new on example.org.", {"example.org"}),
        ("what is new on example.org/news, and on a.example.net?", {"example.org", "a.example.net"}),
        ("mail Ben@Example.org and a.b+c@x.co.uk.", {"ben@example.org", "a.b+c@x.co.uk"}),
        ("see https://example.org/?to=eve@evil.example", {"example.org"}),
        ("nothing here", set()),
        ("Summarise notes.md", set()),
        ("run deploy.sh, then main.py; unpack old.zip and my.notes.md.", set()),
        ("read files/backup.com, ~/a.org and C:\\new\\b.net", set()),
        ("read https://notes.md/ for me", {"notes.md"}),
        ("Read https://notes.md. Then (https://example.org), please!", {"notes.md", "example.org"}),
        ("post it to **https://example.org**, or to “https://a.example.net”", {"example.org", "a.example.net"}),
        (
            "post it in \"Family  Chat\" and tell #general, @Ben and the room 'Ops'",
            {"family chat", "general", "ben", "ops"},
        ),
        ("post it in “Family” or `ops`", {"family", "ops"}),
        ("don't send it to Family, it's private", set()),
        ("summarise 'notes.md' and \"https://example.org\"", {"example.org"}),
        ("look at http://[x and at http://[::1]/", {"::1"}),
    ],
)
def test_places_are_read_from_the_users_words(typed: str, found: set[str]) -> None:
    assert typed_places([typed]) == found


def test_a_mail_address_does_not_open_its_host() -> None:
    assert "example.org" not in typed_places(["write to ben@example.org"])
