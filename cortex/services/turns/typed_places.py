"""The places that a person named in their own words: where a tool may send to although the turn read outside text."""

import re
from collections.abc import Iterable

from cortex.agent.arguments import host_of

_URL = re.compile(r"https?://[^\s<>\"'`]+", re.IGNORECASE)
_END = re.compile(r"\W+\Z")  # of the sentence that the address stands in: "go to https://example.org."
_NAME = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}(?![\w-]|\.\w)"
_HOST = re.compile(rf"(?<![\w@.~/\\-]){_NAME}", re.IGNORECASE)
_MAIL = re.compile(rf"(?<![\w@.+%-])[\w.+%-]{{1,64}}@{_NAME}", re.IGNORECASE)

# A room or a person has no address: named on purpose, in quotes or after # or @, it counts as one.
_NAMED = re.compile(
    r"""["“„«`]([^"“”„«»`\n]{1,80})["”“»`] | (?<!\w)'([^'\n]{1,80})'(?!\w) | (?<!\w)[\#@](\w[\w.-]{0,79})""", re.VERBOSE
)

# A bare name that ends so is taken for a file: many are top-level domains too, and anybody can register notes.md.
_FILE = re.compile(
    r"""\.(?:
        ac | ai | am | app | as | asc | bash | bat | bin | bz | cab | cc | cfg | cl | class | css | csv |
        dat | db | dmg | do | doc | docx | dot | exe | fish | gif | go | gz | hs | htm | html | ico | inc |
        ini | ipynb | iso | jar | java | jpeg | jpg | js | json | jsx | kt | la | log | lua | map | md | mk
        | ml | mm | mobi | mov | mp3 | mp4 | nb | nu | odt | off | pages | pdf | php | pl | pm | png | pptx
        | pro | properties | ps | psd | pt | pub | py | rar | rb | rs | rtf | run | sc | scala | sh | so |
        sql | st | sv | svg | swift | tar | tex | tf | toml | ts | tsx | txt | vb | vi | wasm | wav | webp |
        ws | xls | xlsx | xml | xyz | yaml | yml | zip | zsh
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def typed_places(texts: Iterable[str]) -> frozenset[str]:
    """Hosts of addresses, bare host names, mail addresses and quoted names in these texts, lower case.

    A file's name is no place, in quotes neither: a host may bear it.
    """
    found: set[str] = set()
    for text in texts:
        rest = _URL.sub(" ", text)
        found.update(_END.sub("", host_of(url)) for url in _URL.findall(text))
        found.update(address.lower() for address in _MAIL.findall(rest))
        found.update(name.lower() for name in _HOST.findall(rest) if not _FILE.fullmatch(name[name.rindex(".") :]))
        named = (" ".join("".join(parts).lower().split()) for parts in _NAMED.findall(rest))
        found.update(name for name in named if not _HOST.fullmatch(name))
    return frozenset(found - {""})
