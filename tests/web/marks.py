"""What a page holds, read as a browser reads it: where its forms go, what their fields hold, what is said to be wrong.

Asked instead of the page's words, so that a sentence may be written anew and a test still fails when the page breaks.
"""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx

EMPTY = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "source", "use", "wbr"})


@dataclass(slots=True, kw_only=True)
class Marks:
    """The marks of one page.

    `forms`: where they are sent; `links`: where they lead; `values`: what each named field holds (the last of a name);
    `fields`: the same by the field's id, where several forms have the name;
    `chosen`: the values of the options and boxes that are on; `alerts`: the words of each `role="alert"`;
    `slips`: for each field that was refused (its id without the `-e`), what is wrong with it; `said`: the words of
    each box that tells how it went, by its level (`bad`, `warn`, `ok`, `info`).
    """

    forms: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    chosen: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    slips: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)


def marks(page: httpx.Response | str) -> Marks:
    """Return the marks of a page or of a part of one."""
    reader = _Reader()
    reader.feed(page if isinstance(page, str) else page.text)
    reader.close()
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Marks()
        self._open: list[tuple[str, dict[str, str], list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag not in EMPTY:
            self._open.append((tag, has, []))
        if tag == "form" or "formaction" in has:
            self.found.forms.append(has.get("formaction", has.get("action", "")))
        if tag == "a" and "href" in has:
            self.found.links.append(has["href"])
        if tag == "input" and has.get("type") not in ("checkbox", "radio"):
            self._holds(has, has.get("value", ""))
        if "checked" in has or (tag == "option" and "selected" in has and "value" in has):
            self.found.chosen.append(has.get("value", ""))

    def handle_data(self, data: str) -> None:
        for _, _, words in self._open:
            words.append(data)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            name, has, words = self._open.pop()
            self._ended(name, has, "".join(words))
            if name == tag:
                return

    def _holds(self, has: dict[str, str], value: str) -> None:
        self.found.values[has.get("name", "")] = value
        self.found.fields[has.get("id", "")] = value

    def _ended(self, tag: str, has: dict[str, str], words: str) -> None:
        told, classes = " ".join(words.split()), has.get("class", "").split()
        if tag == "textarea":
            self._holds(has, words)
        if tag == "option" and "selected" in has and "value" not in has:
            self.found.chosen.append(told)
        if has.get("role") == "alert" and told:
            self.found.alerts.append(told)
        if "fr-e" in classes and has.get("id", "").endswith("-e"):
            self.found.slips[has["id"].removesuffix("-e")] = told
        if "say" in classes and told:
            self.found.said[classes[-1]] = told
