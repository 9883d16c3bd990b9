from collections import namedtuple
from io import StringIO

import pytest
from msgspec import Struct, field
from rich.console import Console

from cortex.base.record import as_dict, defaults, field_names
from cortex.integrations.home_assistant.server import HomeServer
from cortex.notify.context import SmtpServer, Vapid
from cortex.ports.channels import Target

Point = namedtuple("Point", "x y")


class Leaf(Struct, frozen=True, kw_only=True):
    word: str
    length: int = 3


class Tree(Leaf, frozen=True, kw_only=True):
    leaves: tuple[Leaf, ...] = ()
    named: dict[str, Leaf] = field(default_factory=dict)
    at: Point = Point(0, 0)


def test_a_record_becomes_plain_down_to_its_leaves() -> None:
    leaf = Leaf(word="oak")
    tree = Tree(word="wood", leaves=(leaf,), named={"first": leaf}, at=Point(1, leaf))
    plain = {"word": "oak", "length": 3}
    found = as_dict(tree)
    assert found == {"word": "wood", "length": 3, "leaves": (plain,), "named": {"first": plain}, "at": (1, plain)}
    assert isinstance(found["at"], Point)


def test_a_record_tells_its_fields_and_what_they_are_unless_said() -> None:
    assert field_names(Tree) == field_names(Tree(word="x")) == ("word", "length", "leaves", "named", "at")
    assert defaults(Tree) == {"length": 3, "leaves": (), "at": Point(0, 0)}


SECRETIVE = [
    Target(address="s3cret", key="s3cret", secret="s3cret"),
    Vapid(keys=("s3cret",), subject="mailto:a@example.org"),
    SmtpServer(host="mail.example", port=1, security="none", sender="a", password="s3cret"),
    HomeServer(host="home.example", port=1, is_tls=False, token="s3cret"),
]


@pytest.mark.parametrize("record", SECRETIVE, ids=lambda one: type(one).__name__)
def test_a_secret_is_shown_nowhere(record: Struct) -> None:
    console = Console(file=StringIO(), width=200)
    console.print(record)
    shown = f"{record!r} {record} {record.__rich_repr__()} {console.file.getvalue()}"  # type: ignore[attr-defined]
    assert type(record).__name__ in shown
    assert "s3cret" not in shown


def test_what_is_no_secret_is_shown() -> None:
    assert repr(SECRETIVE[1]) == "Vapid(subject='mailto:a@example.org')"
    assert repr(SECRETIVE[0]) == "Target()"
