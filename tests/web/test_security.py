"""The shield: which hosts, which sites, which addresses to bind; its rules one by one."""

from pathlib import Path

import pytest
from starlette.datastructures import Headers

from cortex.base.server_settings import refusal
from cortex.base.settings import Settings, load_settings
from web.security import host_rule, is_cross_site, local_path

EVERYWHERE = "0.0.0.0"  # noqa: S104  (what is tested is that it is refused)


def settings(tmp_path: Path, **given: object) -> Settings:
    return load_settings(None, home=tmp_path, **given)


@pytest.mark.parametrize(
    ("method", "path", "headers", "is_refused"),
    [
        ("POST", "/tasks", {"sec-fetch-site": "same-origin"}, False),
        ("POST", "/tasks", {"sec-fetch-site": "none"}, False),
        ("POST", "/tasks", {"sec-fetch-site": "cross-site", "origin": "http://localhost"}, True),
        ("POST", "/tasks", {"sec-fetch-site": "same-site"}, True),
        ("POST", "/tasks", {"origin": "http://localhost"}, False),
        ("POST", "/tasks", {"origin": "https://evil.example"}, True),
        ("POST", "/tasks", {"origin": "null"}, True),
        ("POST", "/tasks", {}, True),
        ("DELETE", "/tasks", {}, True),
        ("GET", "/", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, False),
        ("GET", "/", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, True),
        ("GET", "/", {}, False),
        ("GET", "/c/1/events", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True),
        ("GET", "/c/1/events", {"origin": "https://evil.example"}, True),
        ("GET", "/c/1/events", {"sec-fetch-site": "same-origin"}, False),
        ("GET", "/elsewhere", {"accept": "text/event-stream", "sec-fetch-site": "same-site"}, True),
    ],
)
def test_only_our_own_pages_may_ask(method: str, path: str, headers: dict[str, str], is_refused: bool) -> None:
    assert is_cross_site(method, path, Headers({"host": "localhost", **headers})) is is_refused


@pytest.mark.parametrize(
    ("given", "host", "is_ours"),
    [
        ({}, "127.0.0.1:8484", True),
        ({}, "localhost", True),
        ({}, "[::1]:8484", True),
        ({}, "evil.example", False),
        ({}, "127.0.0.1.evil.example", False),
        ({}, "", False),
        ({}, "192.168.1.5:8484", False),
        ({"host": EVERYWHERE}, "192.168.1.5:8484", True),
        ({"host": EVERYWHERE}, "evil.example", False),
        ({"host": EVERYWHERE, "container": True}, "127.0.0.1:8484", True),
        ({"host": EVERYWHERE, "container": True}, "192.168.1.5:8484", False),
        ({"host": EVERYWHERE, "container": True, "allow_plain_http": "lan"}, "192.168.1.5:8484", True),
        ({"public_url": "https://cortex.example.org"}, "cortex.example.org", True),
        ({"allowed_hosts": ("box.lan",)}, "BOX.lan:8484", True),
    ],
)
def test_a_foreign_host_name_is_not_answered(
    given: dict[str, object], host: str, is_ours: bool, tmp_path: Path
) -> None:
    assert host_rule(settings(tmp_path, **given)).allows(host) is is_ours


PUBLIC = {"host": EVERYWHERE, "public_url": "https://cortex.example.org"}


@pytest.mark.parametrize(
    ("given", "has_account", "says"),
    [
        ({}, False, ""),
        ({"host": "::1"}, False, ""),
        ({"host": EVERYWHERE}, False, "no account exists"),
        ({"host": EVERYWHERE}, True, "CORTEX_PUBLIC_URL"),
        ({"host": EVERYWHERE, "public_url": "http://x.example"}, True, "CORTEX_PUBLIC_URL"),
        (PUBLIC, True, "CORTEX_TRUSTED_PROXIES"),
        ({**PUBLIC, "trusted_proxies": ("10.0.0.1",)}, True, ""),
        ({"host": EVERYWHERE, "allow_plain_http": "lan"}, True, ""),
        ({"host": EVERYWHERE, "allow_plain_http": "lan"}, False, "no account exists"),
        ({"host": EVERYWHERE, "container": True}, False, ""),
    ],
)
def test_beyond_this_machine_it_binds_only_when_that_is_safe(
    given: dict[str, object], has_account: bool, says: str, tmp_path: Path
) -> None:
    why_not = refusal(settings(tmp_path, **given), has_account=has_account)
    assert says in why_not
    assert bool(why_not) is bool(says)


@pytest.mark.parametrize(
    ("value", "goes_to"),
    [
        ("/tasks?list=home", "/tasks?list=home"),
        ("", "/"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_the_way_on_never_leaves_this_site(value: str, goes_to: str) -> None:
    assert local_path(value) == goes_to
