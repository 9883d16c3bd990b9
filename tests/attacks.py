"""Lists of attacks, put together from their parts: a tenth as long as the public lists that Cortex was tried with.

Inside addresses (2,309 in public), paths that lead out (35,231 tries by four tools), scripts in texts (8,409).
"""

import ipaddress
from collections.abc import Iterator
from itertools import product

INSIDE_V4 = (
    "127.0.0.1",
    "127.8.9.10",
    "10.1.2.3",
    "172.16.5.6",
    "172.31.255.254",
    "192.168.7.8",
    "169.254.169.254",
    "100.64.0.9",
    "198.18.0.1",
    "0.0.0.0",  # noqa: S104 - it is asked for, not listened on
    "255.255.255.255",
)
INSIDE_V6 = ("::1", "::", "fe80::1", "fc00::5", "fd00:ec2::254", "ff02::1", "2001:db8::7", "2001::1", "fec0::1")


def inside_urls() -> list[str]:
    """URLs of inside addresses, in every way of writing one that a parser, a C library or a browser understands."""
    v4 = [f"http://{host}/" for address in INSIDE_V4 for host in _v4_hosts(ipaddress.IPv4Address(address))]
    v6 = [f"http://[{host}]/" for address in INSIDE_V6 for host in _v6_hosts(ipaddress.IPv6Address(address))]
    return list(dict.fromkeys(v4 + v6))


def _v4_hosts(address: ipaddress.IPv4Address) -> Iterator[str]:
    number, (a, b, c, d) = int(address), address.packed
    pair = f"{number >> 16:x}:{number & 0xFFFF:x}"
    yield from (str(address), f"{address}.", f"{address}:8484", f"person@{address}", f"public.test%40@{address}")
    yield from (str(number), hex(number), hex(number).upper().replace("X", "x"), f"0{number:o}", f"0x{number:016x}")
    yield from (f"{a:#x}.{b:#x}.{c:#x}.{d:#x}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a:#x}.{b}.0{c:o}.{d}")
    yield from (f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{number & 0xFFFF}")
    yield str(address).translate({ord(digit): ord(digit) + 0xFEE0 for digit in "0123456789"})
    yield str(address).replace(".", "\u3002")
    for wrapped in (f"::ffff:{address}", f"::ffff:{pair}", f"::{address}", f"64:ff9b::{pair}", f"2002:{pair}::1"):
        yield f"[{wrapped}]"


def _v6_hosts(address: ipaddress.IPv6Address) -> Iterator[str]:
    yield from (str(address), address.exploded, address.exploded.upper(), f"{address}%25eth0")


def ways_out() -> list[str]:
    """Paths that a folder's door may resolve to something outside it, for the tree of `tests/integrations/paths.py`."""
    starts = ("", "./", "/", "//", "sub/", "sub/deep/../../", "sub/./", "up/", "root/", "a.txt/", "cwd/", "~/", " ")
    plain = ("..", "../..", "../../../../../../..", "./..", ".././..", "..//..", "..\\..", "....//..", "..;/..")
    coded = ("%2e%2e", "%252e%252e", "..%2f..", "..%c0%af..", "\uff0e\uff0e", ".\u200b.", "\u2025", "..\0")
    ends = ("secret.txt", "cortex.db", "ben/b.txt", "etc/passwd")
    return [f"{start}{step}/{end}" for start, step, end in product(starts, plain + coded, ends)]


HIT = "window.hits=(window.hits||0)+1"  # what a script that runs does; the page counts
FOREIGN = "evil.example"  # where a text that loads something would be heard of
_ELEMENTS = (
    "img src=x",
    "svg",
    "body",
    "details open",
    "input autofocus",
    "video src=x",
    "audio src=x",
    "marquee",
    "iframe",
    "object data=x",
    "select autofocus",
    "div tabindex=1 autofocus",
)
_EVENTS = ("onerror", "onload", "onfocus", "ontoggle", "onstart", "onpointerover", "hx-on:load", "onanimationstart")
_BREAKS = ("", '">', "'>", "</title>", "</textarea>", "-->", "]]>", "`</code>")
_SCHEMES = (
    "javascript:",
    "JaVaScRiPt:",
    "java\tscript:",
    "\x01javascript:",
    "java&#10;script:",
    "&#106;avascript:",
    "javascript&colon;",
    "javascript://%0a",
    "data:text/html,",
    "vbscript:",
)
_LINKS = ("[go]({})", "<{}>", "[go](<{}>)", "[r]: {}\n\n[r]", "![go]({})", "<a href={}>go</a>", "<form action='{}'>")
_LOADS = (
    "<img src=//{}/i>",
    "![leak](https://{}/i.png)",
    "<link rel=stylesheet href=//{}/c>",
    "<link rel=prefetch href=//{}/p>",
    "<style>@import '//{}/s'</style>",
    "<p style='background:url(//{}/b)'>x",
    "<meta http-equiv=refresh content='0;url=//{}/m'>",
    "<base href=//{}/>",
    "<video poster=//{}/v>",
    "<svg><image href=//{}/g></svg>",
    "<iframe src=//{}/f></iframe>",
    "<object data=//{}/o></object>",
    "<script src=//{}/j></script>",
    "<div hx-get='//{}/h' hx-trigger=load>x</div>",
)


def scripts() -> list[str]:
    """Texts that run a script or load something from elsewhere wherever they are taken for more than text."""
    acting = [
        f"{out}<{element} {event}={HIT}>" for out, element, event in product(_BREAKS, _ELEMENTS, _EVENTS)
    ]  # fmt: skip
    bare = [f"{out}<script>{HIT}</script>" for out in _BREAKS]
    linked = [link.format(scheme + HIT) for link, scheme in product(_LINKS, _SCHEMES)]
    loading = [f"{out}{load.format(FOREIGN)}" for out, load in product(_BREAKS[:2], _LOADS)]
    return acting + bare + linked + loading
