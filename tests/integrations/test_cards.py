"""vCards as programs write them, and as nobody should: read within limits, and changed without losing a line."""

from typing import Any

import pytest

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.cards.lines import lines_of
from cortex.integrations.foreign.cards.reading import contact_of
from cortex.integrations.foreign.cards.writing import written

NOW = "2026-11-28T12:00:00+00:00"


def card(*lines: str, version: str = "3.0", end: str = "\r\n") -> str:
    return end.join(["BEGIN:VCARD", f"VERSION:{version}", "UID:one", *lines, "END:VCARD", ""])


def read(*lines: str, **how: str) -> dict[str, Any]:
    found = contact_of(card(*lines, **how))
    assert found is not None
    return found


def changed(data: str, **fields: Any) -> str:
    return written({"data": data, "uid": "one", "fields": fields, "now": NOW})


@pytest.mark.parametrize(
    ("line", "birthday"),
    [
        ("BDAY:1980-12-24", "1980-12-24"),
        ("BDAY:19801224", "1980-12-24"),
        ("BDAY;VALUE=date:1980-12-24", "1980-12-24"),
        ("BDAY:1980-12-24T00:00:00Z", "1980-12-24"),
        ("BDAY:--1224", "--12-24"),
        ("BDAY:--12-24", "--12-24"),
        ("BDAY;X-APPLE-OMIT-YEAR=1604:1604-12-24", "--12-24"),
        ("BDAY;VALUE=text:circa 1800", ""),
        ("BDAY:1980", ""),
        ("BDAY:1980-02-30", ""),
        ("BDAY:9999999-99-99", ""),
        ("BDAY:--0229", "--02-29"),
    ],
)
def test_a_birthday_in_each_form(line: str, birthday: str) -> None:
    assert read("FN:Mia", line)["birthday"] == birthday


def test_labels_of_each_program_and_what_is_preferred_first() -> None:
    found = read(
        "N:Keller;Mia;;;", "EMAIL;TYPE=INTERNET;TYPE=HOME:mia@example.org", "item1.EMAIL;type=pref:m@work.example",
        "item1.X-ABLabel:_$!<Work>!$_", 'TEL;TYPE="cell,voice":0151', "TEL;VALUE=uri;TYPE=home:tel:+49-30",
        "ADR;TYPE=home:;;Hill Road 4;Kiel;;24103;Germany",
    )  # fmt: skip
    assert found["name"] == "Mia Keller"
    assert found["emails"] == [("work", "m@work.example"), ("home", "mia@example.org")]
    assert found["phones"] == [("cell", "0151"), ("home", "+49-30")]
    assert found["addresses"] == [("home", "Hill Road 4\n24103 Kiel\nGermany")]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_folded_lines_are_one(end: str) -> None:
    assert read(f"FN:Mia{end} Kel{end}\tler", end=end)["name"] == "MiaKeller"


def test_a_group_is_nobody_and_a_nameless_card_is_called_by_what_it_has() -> None:
    assert contact_of(card("FN:Choir", "KIND:group", version="4.0")) is None
    assert read("ORG:Garage Meyer")["name"] == "Garage Meyer"
    assert read("TEL:0151")["name"] == "0151"


@pytest.mark.parametrize("data", ["", "BEGIN:VCALENDAR\r\nEND:VEVENT", "x" * 100_000, "BEGIN:VCARD\r\n" * 50, "\x00"])
def test_what_is_no_card_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="no card"):
        contact_of(data)


@pytest.mark.parametrize(
    "lines",
    [
        ["FN:" + "A" * 5_000_000],
        ["FN:a", "PHOTO;ENCODING=b:" + "A" * 10_000_000],
        ["FN:a", *["TEL:1"] * 4_000],
        ["FN:a", "NOTE:" + "\\" * 19_000],
        ["FN:a", 'TEL;TYPE="' + ";" * 19_000],
        ["FN:a", "ADR:" + ";" * 19_000],
        ["FN:a", ";" * 19_000],
        ["FN:a", "EMAIL" + ";X=1" * 4_000 + ":a@b.c"],
        ["FN:a", *(f" {'x' * 70}" for _ in range(100_000))],
    ],
    ids=["long name", "photo", "numbers", "backslashes", "open quote", "parts", "no name", "parameters", "folds"],
)
def test_a_bomb_is_read_within_bounds(lines: list[str]) -> None:
    found = read(*lines)
    assert len(found["name"]) <= 300
    assert len(found["phones"]) <= 20


def test_a_change_keeps_every_other_byte() -> None:
    photo = "PHOTO;ENCODING=b;TYPE=JPEG:" + "\r\n ".join(["QUJD" * 18] * 200)
    own = ['X-CUSTOM;A="b:c":odd\\,value', "item1.TEL:0151", "item1.X-ABLabel:Boat", photo]
    before = card("FN:Mia Keller", "N:Keller;Mia;Ann;Dr.;", *own)
    after = changed(before, note="new\nnote", emails=["mia@example.org"])
    for line in own:
        assert line in after
    assert "N:Keller;Mia;Ann;Dr.;" in after
    assert "NOTE:new\\nnote\r\n" in after
    assert after.endswith("END:VCARD\r\n")
    gone = changed(after, phones=[])
    assert "item1." not in gone, "a label goes with its number"


def test_values_that_stand_keep_their_labels() -> None:
    before = card("FN:Mia", "EMAIL;TYPE=HOME:Mia@example.org", "EMAIL;TYPE=WORK:old@example.org")
    after = changed(before, emails=["mia@EXAMPLE.org", "new@example.org"])
    assert "EMAIL;TYPE=HOME:Mia@example.org" in after
    assert "old@example.org" not in after
    assert "EMAIL;TYPE=INTERNET:new@example.org" in after


@pytest.mark.parametrize(
    ("version", "line"), [("3.0", "BDAY;X-APPLE-OMIT-YEAR=1604:1604-12-24"), ("4.0", "BDAY:--1224")]
)
def test_a_birthday_without_its_year_is_written_as_its_version_has_it(version: str, line: str) -> None:
    after = changed(card("FN:Mia", version=version), birthday="--12-24")
    assert line in after
    found = contact_of(after)
    assert found is not None
    assert found["birthday"] == "--12-24"


def test_no_text_becomes_a_line_of_its_own() -> None:
    after = changed("", name="Eve\r\nEND:VCARD\r\nBEGIN:VCARD", note="x\nTEL:1", emails=["a@b.c\r\nTEL:2"])
    assert [line.name for line in lines_of(after)].count("END") == 1
    found = contact_of(after)
    assert found is not None
    assert found["phones"] == []


def test_what_is_no_card_is_not_changed() -> None:
    with pytest.raises(UnreadableError):
        changed("nonsense", note="x")
