"""Web addresses as people type them: what passes is taken by the libraries below, what they refuse is refused first."""

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base.address import named, vet
from cortex.base.contact import mail_address
from cortex.base.web_address import ascii_host, web_place

REFUSED = {
    "circled digits": "http://①②⑦.⓪.⓪.①",
    "digits of another script": "http://٣.٣.٣.٣",
    "a short IPv4 address": "http://127.1/v1",
    "a hexadecimal one": "http://0x7f.0x0.0x0.0x1",
    "one number": "http://2130706433",
    "a number too large": "http://256.1.1.1",
    "octal": "http://0177.0.0.1",
    "an empty label": "http://a..b",
    "a label too long": f"http://{'a' * 64}.example",
    "a name too long": f"http://{'a.' * 130}example",
    "half a bracket": "http://[::1",
    "no IPv6 address": "http://[::g]",
    "more behind a bracket": "http://[::1]x",
    "an address of a later version": "http://[v1.a]",
    "a zone": "http://[fe80::1%25eth0]",
    "a blank": "http://ho st",
    "an escape": "http://a%2eb",
    "a backslash": "http://a\\b",
    "a hyphen ahead": "http://-a.example",
    "no punycode": "http://xn--zz--zz.example",
    "a port too large": "http://host:65536",
    "port 0": "http://host:0",
    "a port in words": "http://host:https",
    "wide digits": "http://host:\uff18\uff10",
    "no host": "http://:80",
    "nothing but the scheme": "https://",
    "another scheme": "ftp://host",
    "a sign that is not printed": "http://host/\x7f",
    "half a surrogate": "http://host/\ud800",
    "right to left": "http://host\u202e.example",
    "zero width": "http://ho\u200bst",
    "a mathematical letter": "http://\U0001d552.example/\n",
}
TAKEN = {
    "http://localhost:8080/v1": ("localhost", 8080),
    "https://api.example.org": ("api.example.org", 443),
    "http://my_box:8000": ("my_box", 8000),
    "http://192.168.1.20": ("192.168.1.20", 80),
    "http://[::1]:11434/v1": ("::1", 11434),
    "http://Box.LAN./v1": ("box.lan", 80),
    "https://münchen.example": ("xn--mnchen-3ya.example", 443),
    "https://xn--mnchen-3ya.example": ("xn--mnchen-3ya.example", 443),
}


@pytest.mark.parametrize("url", REFUSED.values(), ids=REFUSED)
def test_what_no_library_takes_is_refused_in_words(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        web_place(url)


@pytest.mark.parametrize("url", TAKEN)
def test_where_an_address_leads(url: str) -> None:
    assert web_place(url) == TAKEN[url]
    assert httpx.URL(url).raw_host.decode().rstrip(".") == TAKEN[url][0]


@given(st.text(max_size=40), st.text(max_size=10))
def test_whatever_passes_the_libraries_take(host: str, rest: str) -> None:
    url = f"http://{host}/{rest}"
    try:
        place = web_place(url)
    except ValueError:
        return
    for made in (httpx.URL(url), httpx2.URL(url)):
        assert made.host  # which decodes it
    place[0].encode("idna")  # as the resolver does


def test_a_host_of_other_letters_may_be_reached_where_it_was_named() -> None:
    policy = named(("MÜNCHEN.example", 443))
    assert str(vet("192.168.1.2", policy, host="xn--mnchen-3ya.example", port=443)) == "192.168.1.2"


@pytest.mark.parametrize("host", ["①②⑦.⓪.⓪.①", "127.0.0", "a..b"])
def test_a_mail_address_has_a_host_too(host: str) -> None:
    with pytest.raises(ValueError, match="e-mail"):
        mail_address(f"ada@{host}")
    with pytest.raises(ValueError, match="address"):
        ascii_host(host)
