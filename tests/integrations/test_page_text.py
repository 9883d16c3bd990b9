"""A page's words without its trappings; no page breaks the reader."""

import pytest

from cortex.integrations.page_text import readable

PARAGRAPH = "<p>The harbour opens at six and the first ferry leaves a quarter of an hour later.</p>"


def test_title_text_and_links() -> None:
    html = (
        "<html><head><title> Ferry\n times </title></head><body><nav><a href='/x'>Menu</a></nav><article>"
        f"{PARAGRAPH * 4}<p>Ask at <a href='https://example.org/desk'>the desk</a> for a ticket to the island.</p>"
        "</article></body></html>"
    )
    title, text = readable(html, "https://example.org/ferry")
    assert title == "Ferry times"
    assert "first ferry leaves" in text
    assert "https://example.org/desk" in text
    assert "Menu" not in text


@pytest.mark.parametrize(
    "html",
    [
        "",
        "   ",
        "<",
        "<html>",
        "\0\0\0",
        "no tags at all",
        "<div>" * 20_000,
        "<p>" + "<b>" * 5_000 + "x",
        "<!DOCTYPE html [<!ENTITY a 'x'><!ENTITY b '&a;&a;'>]><p>&b;</p>",
        "<table>" + "<tr><td>" * 3_000,
        "<script>" + "x" * 100_000,
        "&#x110000;&#0;<p>\ud800</p>",
        "<![CDATA[" * 5_000,
    ],
    ids=range(13),
)
def test_a_broken_page_gives_little_and_breaks_nothing(html: str) -> None:
    title, text = readable(html, "https://example.org/")
    assert isinstance(title + text, str)
