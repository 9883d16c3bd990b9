"""Takes out of an answer what another product wrote into it for itself: reasoning, tool calls, marks of sources.

Code stays as it is, also where such marks are what it is about. Runs in `program.py` only.
"""

import json
import re

LINK_CHARACTERS = 4_000
_REASONING = r"think|thinking|thoughts?|reasoning|reason|antthinking|seed:think|scratchpad"
_TOOLS = (
    r"tool_calls?|tool_code|tool_responses?|tool_results?|tool_outputs?|tool_use|"
    r"(?:antml:)?function_calls|function_call|function_results|grok:render"
)
_BLOCK = re.compile(rf"<(?P<tag>{_REASONING}|{_TOOLS}|details|antartifact)(?P<marks>(?:\s[^<>]*)?)>", re.I)
_CODE = re.compile(r"(?:^|(?<=\n))[ ]{0,3}(?P<fence>`{3,}|~{3,})|(?P<ticks>`+)")
_FOLDED = ("reasoning", "thinking", "tool_calls", "tool_call", "tools", "web_search")  # by Open WebUI
_TYPE = re.compile(r"""\btype=["']?([\w.+/-]+)""", re.I)
_SUMMARY = re.compile(r"\s{0,20}<summary>.{0,2000}?</summary>\s{0,20}", re.I | re.S)
_PAIRS = tuple(
    (re.compile(begin), re.compile(end))
    for begin, end in (
        (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
        (r"<\|channel\|>(?:analysis|commentary)[^<\n]{0,200}<\|message\|>", r"<\|(?:end|call|return)\|>"),
        (
            r"<\uff5ctool\u2581(?:calls|outputs)\u2581begin\uff5c>",
            r"<\uff5ctool\u2581(?:calls|outputs)\u2581end\uff5c>",
        ),
        (r"\[THINK\]", r"\[/THINK\]"),
        (r"\u25c1think\u25b7", r"\u25c1/think\u25b7"),
        (r"\[TOOL_CALLS\]", r"\n|$"),
    )
)
_OPENING = re.compile("|".join([_BLOCK.pattern, _CODE.pattern, *(f"(?:{begin.pattern})" for begin, _ in _PAIRS)]), re.I)
_STRAY_END = re.compile(rf"</(?:{_REASONING})>", re.I)
_NO_REASON = re.compile(rf"<(?:{_REASONING})[\s>]", re.I)
_REFERENCE = r"turn\d{1,4}[a-z_]{2,20}\d{1,4}"
_MARKS = (
    "\u3010[^\u3010\u3011\n]{0,200}\u2020[^\u3010\u3011\n]{0,300}\u3011"  # 【4†source】
    rf"|\u3010\d+(?::\d+)+\u3011|\u3010{_REFERENCE}\u3011"
    "|\ue200(?!url\ue202|(?:product_)?entity\ue202|link_title\ue202)[^\ue200\ue201]{0,4000}\ue201"
    rf"|\b(?:file)?cite(?:\ue202?{_REFERENCE})+(?:L\d+(?:-L\d+)?)?"
    rf"|(?:navlist|image_group|video)(?=[\w, ]{{0,60}}{_REFERENCE})(?:[\w ]{{0,60}}?,? ?{_REFERENCE})+"
    rf"|[\[(]{_REFERENCE}(?:,\s*{_REFERENCE})*[\])]"
    r"|\[cite_start\]|\[cite: ?[\d, -]{1,100}\]"
    r"|<\|(?:im_)?start\|>(?:assistant|system|user|tool)?"
    r"|<\|(?:begin|start|end|im|eot|eom|channel|message|return|call|python|constrain|header|fim)[a-z_]{0,30}\|>(?:final(?=<\|))?"
)
_MARK = re.compile(rf"[ \t]{{0,8}}(?:{_MARKS})(?=[ \t]{{0,8}}(?:[.,;:!?)]|\n|$))|(?:{_MARKS})")
_NAMED = re.compile("\ue200(?P<kind>url|(?:product_)?entity|link_title)\ue202(?P<said>[^\ue200\ue201]{0,4000})\ue201")
_PRIVATE = re.compile("[\ue200-\ue206]")
_LOST = re.compile(r"(!?)\[([^\[\]\n]{0,300})\]\((?:sandbox:|file-service:|/api/v1/files/)[^()\s]{0,500}\)")
_WRITING = re.compile(
    r"(?m)^:::writing\{[^\n]{0,1000}\}[ \t]*\n((?:(?!:::).*\n)*):::[ \t]*$"
)  # a text to be sent or kept
_END_OF_LINE = re.compile(r"(?:[ \t]{0,8}\n){0,3}")


def cleaned(text: str) -> str:
    """The answer as a person was meant to read it."""
    if not any(one.search(text) for one in (_OPENING, _STRAY_END, _MARK, _LOST, _PRIVATE, _WRITING)):
        return text
    rest = _WRITING.sub(r"\1", _without_stray_end(text))
    made: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while found := _OPENING.search(rest, at):
        made.append(_plain(rest[at : found.start()]))
        at = _passed(rest, found, made, unclosed)
    made.append(_plain(rest[at:]))
    whole = "".join(made)
    return text if whole == text else whole.strip()


def _passed(text: str, found: re.Match[str], made: list[str], unclosed: set[str]) -> int:
    """Where it goes on behind what begins there; `made` gets what stays of it. `unclosed`: what ends nowhere."""
    if found["fence"] or found["ticks"]:
        end = _end_of_code(text, found)
        made.append(text[found.start() : end])
        return end
    name = (found["tag"] or found[0]).lower()
    begun, end = (-1, -1) if name in unclosed or _is_own(found) else _end_of_block(text, found)
    if end >= 0:
        made.append(_kept(found, text[found.end() : begun]))
        return _END_OF_LINE.match(text, end).end()  # type: ignore[union-attr]  # it always matches
    if not _is_own(found):
        unclosed.add(name)
    if _is_own(found) or name == "antartifact" or any(map(_is_said, made)):
        made.append(found[0])  # somebody's own words about such a mark
        return found.end()
    return len(text)  # an answer that was cut off while it was thought about


def _is_said(text: str) -> bool:
    return bool(text) and not text.isspace()


def _is_own(found: re.Match[str]) -> bool:
    """Tell whether it is a section that folds, as anybody may write one."""
    return (found["tag"] or "").lower() == "details" and _type(found) not in (*_FOLDED, "code_interpreter")


def _type(found: re.Match[str]) -> str:
    kind = _TYPE.search(found["marks"] or "")
    return kind[1].lower() if kind else ""


def _end_of_code(text: str, found: re.Match[str]) -> int:
    if found["fence"]:
        end = re.compile(rf"\n[ ]{{0,3}}{re.escape(found['fence'])}[`~]*[ \t]*(?=\n|$)").search(text, found.end())
        return end.end() if end else len(text)
    end = re.compile(rf"(?<!`){found['ticks']}(?!`)").search(text, found.end(), found.end() + 2_000)
    return end.end() if end else found.end()


def _end_of_block(text: str, found: re.Match[str]) -> tuple[int, int]:
    """Where its inside ends, and where it ends; -1 for one that does not."""
    if not found["tag"]:
        closing = next(end for begin, end in _PAIRS if begin.match(found[0]))
        end = closing.search(text, found.end())
        return (end.start(), end.end()) if end else (-1, -1)
    depth, last = 1, (-1, -1)
    for one in re.compile(rf"<(/?){re.escape(found['tag'])}(?:\s[^<>]*)?>", re.I).finditer(text, found.end()):
        depth += -1 if one[1] else 1
        last = one.span() if one[1] else last
        if not depth:
            break
    return last


def _kept(found: re.Match[str], inside: str) -> str:
    tag, said = (found["tag"] or "").lower(), _type(found)
    if tag == "antartifact":
        is_text = said in ("text/markdown", "text/plain", "")
        return f"\n\n{inside.strip()}\n\n" if is_text else f"\n\n```\n{inside.strip()}\n```\n\n"
    if said == "code_interpreter":
        return f"\n\n{_SUMMARY.sub('', inside, count=1).strip()}\n\n"
    return ""


def _without_stray_end(text: str) -> str:
    """Without reasoning whose beginning stood in the question: up to its end, where no beginning is before it."""
    end = _STRAY_END.search(text)
    if end and not _NO_REASON.search(text, 0, end.start()) and "`" not in text[: end.start()].rpartition("\n")[2]:
        return text[end.end() :]
    return text


def _plain(text: str) -> str:
    text = _NAMED.sub(_said, text)
    text = _MARK.sub("", text)
    text = _LOST.sub(lambda lost: "(a picture)" if lost[1] else f"{lost[2]} (a file that is not here)", text)
    return _PRIVATE.sub("", text)


def _said(mark: re.Match[str]) -> str:
    parts = mark["said"].split("\ue202")
    if mark["kind"].endswith("entity"):
        try:
            names = json.loads(parts[0])
        except (ValueError, RecursionError):
            return ""
        return names[1] if isinstance(names, list) and len(names) > 1 and isinstance(names[1], str) else ""
    if len(parts) > 1 and parts[1].startswith(("https://", "http://")):
        return f"[{parts[0]}]({parts[1]})"
    return parts[0]


def with_sources(text: str, references: object) -> str:
    """The answer with its marks of sources as the links that the other product showed for them."""
    seen: set[str] = set()
    for one in references[:500] if isinstance(references, list) else ():
        mark, link = (one.get("matched_text"), one.get("alt")) if isinstance(one, dict) else (None, None)
        if not isinstance(mark, str) or not isinstance(link, str) or mark in seen or len(link) > LINK_CHARACTERS:
            continue
        if _PRIVATE.search(mark) or "\u2020" in mark:  # never a text's own words
            seen.add(mark)
            text = text.replace(mark, link)
    return text
