"""Addresses of people: what mail servers and push services take, and nothing that could become a second line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base.contact import mail_address, push_subject


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("ada@example.org", "ada@example.org"),
        ("  Ada.L+tag@Example.ORG ", "Ada.L+tag@example.org"),
        ("root@mailhost", "root@mailhost"),
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
    ],
)
def test_an_address_is_kept_as_servers_take_it(given_text: str, kept: str) -> None:
    assert mail_address(given_text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ada",
        "@example.org",
        "ada@",
        "Ada <ada@example.org>",
        "ada@example.org, bob@example.org",
        "ada@example.org\r\nBcc: all@example.org",
        "ada\r\n@example.org",
        '"ada b"@example.org',
        ".ada@example.org",
        "ada..b@example.org",
        "ada@-example.org",
        "ada@exa mple.org",
        "ada@[127.0.0.1]",
        "ädä@example.org",
        "a" * 65 + "@example.org",
        "ada@" + ".".join(["a" * 60] * 5),
    ],
    ids=lambda text: text[:24],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|characters"):
        mail_address(text)


@given(st.text())
def test_no_text_becomes_an_address_with_a_space_a_bracket_or_a_new_line(text: str) -> None:
    kept = _kept(text + "@example.org")
    assert not set(kept) & set(' \t\r\n<>,;:"()[]\\')
    assert kept.isascii()


@pytest.mark.parametrize(
    "text",
    ["mailto:ada@example.org", "https://cortex.example.org", "https://a.example.org:8443/", "https://box.tail1.ts.net"],
)
def test_a_real_contact_is_kept(text: str) -> None:
    assert push_subject(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "ada@example.org",
        "mailto:ada",
        "mailto:ada@localhost",
        "http://cortex.example.org",
        "https://localhost",
        "https://127.0.0.1",
        "https://[::1]/",
        "https://box",
        "https://ada@example.org",
        "",
        "mailto:ada@box.local",
        "mailto:ada@mail.lan",
        "https://cortex.test",
        "https://cortex.internal/",
        "https://cortex.home.arpa",
        "https://nas.fritz.box",
        "https://fritz.box",
        "mailto:ada@home.arpa",
        "https://service.arpa",
        "mailto:ada@box.mail",
        "https://CORTEX.LOCAL",
        "https://cortex.local./",
        "https://cortex.localdomain",
        "https://127.1",
        "https://cortex.ts.example",
    ],
)
def test_a_contact_that_push_services_refuse_is_refused_here(text: str) -> None:
    with pytest.raises(ValueError, match=r"contact|address"):
        push_subject(text)


def _kept(text: str) -> str:
    try:
        return mail_address(text)
    except ValueError:
        return ""
