"""Small files that somebody made to hold a server up: archives, exports, YAML, crontabs and lists of backups."""

import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable

Make = Callable[[], bytes]


def zipped(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return held.getvalue()


def skill(head: str, body: str = "Do it.") -> bytes:
    return f"---\n{head}\n---\n\n{body}\n".encode()


def _aliases() -> bytes:
    levels = "\n".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdef", "bcdefg", strict=True))
    return skill(f"a: &a [x,x,x,x,x,x,x,x,x]\n{levels}\nname: *g\ndescription: *g")


def _central(name: bytes, offset: int, size: int, unpacked: int, crc: int, flags: int = 0) -> bytes:
    head = (20, 20, flags, 8, 0, 0, crc, size, unpacked, len(name), 0, 0, 0, 0, 0, offset)
    return b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", *head) + name


def one_body_many_times(name: str, data: bytes, count: int, *, flags: int = 0, lies: int = 0) -> bytes:
    """An archive whose files are all the same bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    crc, plain = zlib.crc32(data), name.encode()
    local = b"PK\3\4" + struct.pack("<HHHHHIIIHH", 20, flags, 8, 0, 0, crc, len(packed), len(data), len(plain), 0)
    body = local + plain + packed
    lists = _central(plain, 0, len(packed), lies or len(data), crc, flags) * count
    end = struct.pack("<HHHHIIH", 0, 0, count & 0xFFFF, count & 0xFFFF, len(lists), len(body), 0)
    return body + lists + b"PK\5\6" + end


def _nested() -> bytes:
    data = zipped(("conversations.json", b"[]" * 1_000_000))
    for _ in range(5):
        data = zipped(*((f"{number}.zip", data) for number in range(5)))
    return data


def _backup(*members: tuple[str, bytes], pax: dict[str, str] | None = None) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers=pax) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return held.getvalue()


MANIFEST = b'{"made_at":"","version":"","revision":"","kind":"sqlite","databases":["main"],"key":"","format":1}'
LONG = b"x" * 1_000_000
SKILLS: dict[str, Make] = {
    "aliases seven levels deep": _aliases,
    "tens of thousands of skills in one body": lambda: one_body_many_times("a/SKILL.md", _aliases(), 60_000),
    "a hundred skills in one body": lambda: one_body_many_times("a/SKILL.md", skill("a: " + "[x, " * 40_000), 100),
    "skills that unpack to 200 MB": lambda: zipped(*((f"{n}/SKILL.md", bytes(2_000_000)) for n in range(100))),
    "flow in flow": lambda: skill("a: " + "[" * 100_000),
    "keys in keys": lambda: skill("a: " + "{a: " * 50_000),
    "a key of a megabyte": lambda: skill("x" * 900_000 + ": 1"),
    "a key in a megabyte of question marks": lambda: skill("? " * 450_000),
    "a text of a megabyte": lambda: skill("name: a\ndescription: " + "x " * 450_000),
    "a text that never ends": lambda: skill('name: "' + "\\n" * 450_000),
    "a number of a million digits": lambda: skill("name: a\ndescription: " + "9" * 900_000),
    "anchors alone": lambda: skill("\n".join(f"k{n}: &a{n} x" for n in range(10_000))),
    "one key many times": lambda: skill("name: a\n" * 100_000),
    "merging": lambda: skill("a: &a {b: c}\n<<: *a\nname: x\ndescription: y"),
    "tags": lambda: skill("name: !!python/object/apply:os.system [x]\ndescription: y"),
    "documents": lambda: skill("--- \na: 1\n" * 2_000),
    "half a sign": lambda: skill('name: "\\ud800"\ndescription: x'),
    "fences": lambda: b"---\n" * 250_000,
    "names that climb": lambda: zipped(
        ("../../a\0b/SKILL.md", b"x"), ("../../c/SKILL.md", skill("name: ../../x\ndescription: y"))
    ),
    "flow in flow of a short file": lambda: skill("a: " + "[" * 15_000),
    "keys in keys of a short file": lambda: skill("a: " + "{a: " * 4_000),
    "questions of a short file": lambda: skill("? " * 8_000),
    "a text of a short file": lambda: skill("name: a\ndescription: " + "x: " * 5_000),
    "a quoted key of a short file": lambda: skill('"' + "x\n " * 5_000 + '": 1'),
    "entries of a short file": lambda: skill("a: [" + "1," * 8_000 + "]"),
    "fields at the left of a short file": lambda: skill("a: " + "- " * 8_000),
    "a locked archive": lambda: one_body_many_times("a/SKILL.md", b"x", 1, flags=1),
    "an archive that lies about sizes": lambda: one_body_many_times("a/SKILL.md", bytes(50_000_000), 1, lies=5),
}
CHATS: dict[str, Make] = {
    "32 million empty lists": lambda: zipped(("conversations.json", b"[" + b"[]," * 31_999_999 + b"[]]")),
    "empty lists in a list": lambda: zipped(("conversations.json", b"[[" + b"[]," * 9_999_999 + b"[]]]")),
    "lists in lists": lambda: b"[" * 1_000_000,
    "keys in keys of chats": lambda: b'{"a":' * 200_000,
    "a number of a million digits in JSON": lambda: b'[{"id": ' + b"9" * 1_000_000 + b"}]",
    "no numbers": lambda: b'[{"id": NaN, "create_time": -Infinity, "chat": {"messages": [{"content": 1e999}]}}]',
    "blanks": lambda: b" " * 1_000_000 + b"[" + b" " * 1_000_000,
    "a text that is never closed": lambda: b'["' + LONG,
    "archives in archives": _nested,
    "a file of 65,535 files": lambda: zipped(*((f"{number}.json", b"[]") for number in range(65_535))),
    "chats in one body": lambda: one_body_many_times("conversations.json", b'[{"a":1}]' * 99_999, 60_000),
    "one name many times": lambda: zipped(("a.json", b"[]" * 500_000), ("A.json", b"[]")) * 1,
    "marks of reasoning in a row": lambda: json.dumps(
        [{"id": "a", "messages": [{"role": "assistant", "content": "<think>" * 28_000}] * 20}]
    ).encode(),
    "blanks ahead of marks": lambda: json.dumps(
        [{"id": "a", "messages": [{"role": "assistant", "content": (" " * 90 + "\u3010") * 2_000}] * 20}]
    ).encode(),
    "a way that leads round": lambda: json.dumps(
        {"mapping": {"a": {"parent": "a", "message": {}}}, "current_node": "a", "title": "\ud800"}
    ).encode(),
    "half signs": lambda: b'[{"id": "\\ud800", "messages": [{"role": "user", "content": "\\udfff\\u0000"}]}]',
}
CRONTABS: dict[str, Make] = {
    "a crontab of one line": lambda: b"0 3 * * * " + LONG,
    "a crontab of blanks": lambda: b"0 3 * * *" + b" " * 1_000_000 + b"x",
    "a crontab of lines": lambda: b"0 0 29 2 * x\n" * 75_000,
    "fields without end": lambda: b"1," * 400_000 + b" * * * * x",
    "a name without end": lambda: b"# " + LONG + b"\n0 3 * * * x",
    "zones": lambda: b"CRON_TZ=../../../etc/passwd\n0 3 * * * x\n" * 20_000,
    "percent signs": lambda: b"0 3 * * * " + b"\\%" * 400_000,
}
BACKUPS: dict[str, Make] = {
    "a list of a gigabyte": lambda: _backup(("manifest.json", MANIFEST), ("sums.json", b"[" * 200_000_000)),
    "a list of a million entries": lambda: _backup(
        ("manifest.json", MANIFEST), ("sums.json", b'{"a":[1,"x"],' + b'"a":[1,"x"],' * 1_000_000 + b"}")
    ),
    "facts without end": lambda: _backup(("manifest.json", b'{"made_at":"' + bytes(100_000_000))),
    "facts in facts": lambda: _backup(("manifest.json", b"[" * 60_000)),
    "facts that are a list": lambda: _backup(("manifest.json", b"[]")),
    "a name of a megabyte": lambda: _backup(("manifest.json", MANIFEST), ("home/" + "a/" * 500_000 + "b", b"")),
    "a header for all of a megabyte": lambda: _backup(("manifest.json", MANIFEST), pax={"a": "x" * 1_000_000}),
    "headers for all": lambda: _backup(("manifest.json", MANIFEST), pax={f"k{n}": "x" for n in range(3_000)}),
    "a number of many digits": lambda: _backup(("manifest.json", b'{"format":' + b"9" * 60_000 + b"}")),
}
TEXTS: dict[str, Make] = {
    "lists in a file of models": lambda: b'{"models": [{"extra": {"a": [' + b"[]," * 300_000 + b"[]]}}]}",
    "models without end": lambda: b'{"models": [' + b'{"name":"a","provider":"openai","model":"b"},' * 20_000 + b"{}]}",
    "depth in a file of models": lambda: b'{"roles": ' + b"[" * 500_000,
    "digits in a file of models": lambda: b'{"models": [{"told_tokens": ' + b"9" * 900_000 + b"}]}",
    "items of a role": lambda: b"---\ntools:\n" + b"- a\n" * 240_000 + b"---\nx",
    "a list of a role": lambda: b"---\ntools: [" + b"a ," * 6_000 + b"\n---\nx",
    "blanks of a role": lambda: b"---\ntools: [a" + b" " * 19_000 + b"b:\n---\nx",
    "quotes of a role": lambda: b"---\ntools: [" + b"'" * 19_000 + b"\n---\nx",
    "marks of a role": lambda: b"---\nmode: " + b"#:" * 9_000 + b" #:\n---\nx",
}
ALL = {**TEXTS, **SKILLS, **CHATS, **CRONTABS, **BACKUPS}
