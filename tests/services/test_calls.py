"""What the gate takes for the user's own words about where something may go."""

import pytest

from cortex.services.calls import hosts


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("read https://Example.org/a?b=c", {"example.org"}),
        ("what is new on example.org today", {"example.org"}),
        ("mail Ben@Example.org and a.b+c@x.co.uk.", {"ben@example.org", "a.b+c@x.co.uk"}),
        ("see https://example.org/?to=eve@evil.example", {"example.org"}),
        ("nothing here", set()),
    ],
)
def test_places_are_read_from_the_users_words(typed: str, found: set[str]) -> None:
    assert hosts([typed]) == found


def test_a_mail_address_does_not_open_its_host() -> None:
    assert "example.org" not in hosts(["write to ben@example.org"])
