"""The egress rule itself: inside is refused in every disguise, public is let through."""

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base.address import PUBLIC, AddressPolicy, is_inside, named, vet, with_scheme
from cortex.base.errors import NotAllowed

HERE = Path(__file__).parent
INSIDE = (HERE / "inside_addresses.txt").read_text(encoding="utf-8").split()
PUBLIC_ONES = (HERE / "public_addresses.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("address", INSIDE)
def test_inside_is_refused(address: str) -> None:
    with pytest.raises(NotAllowed):
        vet(address, PUBLIC, host="example.org", port=443)


@pytest.mark.parametrize("address", PUBLIC_ONES)
def test_public_is_let_through(address: str) -> None:
    vet(address, PUBLIC, host="example.org", port=443)


def test_two_hundred_public_addresses_pass() -> None:
    spread = [
        f"{first}.{second}.8.8" for first in (1, 5, 23, 34, 52, 77, 104, 151, 185, 212) for second in range(0, 240, 12)
    ]
    assert len(spread) == 200
    assert all(str(vet(address, PUBLIC)) == address for address in spread)


def test_a_mapped_address_comes_out_of_its_wrapping() -> None:
    assert str(vet("::ffff:8.8.8.8", PUBLIC)) == "8.8.8.8"


@given(st.ip_addresses(v=4))
def test_no_disguise_opens_what_is_closed(address: ipaddress.IPv4Address) -> None:
    """Mapped, NAT64 and 6to4 forms of an address are judged as the address itself."""
    plain = is_let_through(address)
    number = int(address)
    assert is_let_through(ipaddress.IPv6Address((0xFFFF << 32) | number)) == plain
    assert is_let_through(ipaddress.IPv6Address((0x0064FF9B << 96) | number)) == plain
    assert is_let_through(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))) == plain


def is_let_through(address: ipaddress.IPv4Address | ipaddress.IPv6Address, policy: AddressPolicy = PUBLIC) -> bool:
    try:
        vet(address, policy)
    except NotAllowed:
        return False
    return True


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert not (address.is_private and is_let_through(address)) or address in ipaddress.ip_network("2002::/16")


@pytest.mark.parametrize(
    ("host", "port", "is_allowed"),
    [
        ("ha.lan", 8123, True),
        ("HA.lan.", 8123, True),
        ("ha.lan", 22, False),
        ("other.lan", 8123, False),
        ("", 0, False),
    ],
)
def test_a_named_policy_knows_exact_pairs(host: str, port: int, is_allowed: bool) -> None:
    policy = named(("ha.lan", 8123))
    allowed = True
    try:
        vet("192.168.1.5", policy, host=host, port=port)
    except NotAllowed:
        allowed = False
    assert allowed is is_allowed


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fd00:ec2::254", "::ffff:169.254.169.254"],  # noqa: S104 - judged, not bound
)
def test_metadata_and_the_like_are_never_reached(address: str) -> None:
    with pytest.raises(NotAllowed):
        vet(address, named(("cloud.lan", 80)), host="cloud.lan", port=80)


def test_without_a_name_nothing_is_reached() -> None:
    with pytest.raises(NotAllowed):
        vet("8.8.8.8", named())


@pytest.mark.parametrize(
    ("host", "is_in"),
    [
        ("nas", True),
        ("nas.lan", True),
        ("box.home.arpa.", True),
        ("192.168.1.4", True),
        ("100.64.0.7", True),
        ("fd00::1", True),
        ("2606:4700::1111", False),
        ("1.1.1.1", False),
        ("example.org", False),
    ],
)
def test_what_stands_in_the_house_is_known_by_its_name(host: str, is_in: bool) -> None:
    assert is_inside(host) == is_in
    typed = f"[{host}]" if ":" in host else host
    assert with_scheme(f"{typed}:8080/v1") == f"{'http' if is_in else 'https'}://{typed}:8080/v1"
