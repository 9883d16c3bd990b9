"""The files of the user's own folder and of the folders that an admin allowed. The jail is `integrations/files.py`."""

import asyncio
import difflib
import fnmatch
from collections.abc import Sequence
from typing import Any

from cortex.base import scan
from cortex.base.clock import ticks_s
from cortex.base.errors import NotFound, ToolFailed, ToolRetry
from cortex.base.zone import moment
from cortex.integrations.files import WRITE_BYTES, Files, FolderItem, decoded, version_of
from cortex.integrations.sandbox import Sandbox
from cortex.ports.documents import DocumentHit, DocumentTexts
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import CallPreview, Output
from cortex.toolkit.stretch import beginning, stretch
from cortex.toolkit.words import NO_CHANGE, counted

SUMMARY = "the user's files: read, write, search, check"
NEEDS = ("Files", "DocumentTexts")
ROLES = {
    "coder": ("file",),
    "orchestrator": ("file_read", "file_search", "file_list", "file_diff", "file_syntax_check"),
}
ADMIN_ROLES = {"orchestrator": ("file",)}
TESTED = "real folders and files"
# What has no text of its own; all else is read as it stands.
DOCUMENTS = (".pdf", ".docx", ".odt", ".eml", ".mht", ".mhtml")
PAGES_AT_ONCE = 10
PAGES_MOST = 10_000
CONTENTS_CHARACTERS = 1_200
SHOWN = 100
HITS = 60
DIFF_CHARACTERS = 400_000
DIFF_LINES = 6_000
HIT_CHARACTERS = 160


@tool(
    words="Read {path}[, page {pages}][, from character {offset}]",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
)
async def file_read(ctx: Ctx, path: str, offset: int = 0, pages: str = "") -> str:
    """Read a file from the user's folders: text, PDF, DOCX, mail.

    Args:
        path: Such as notes.md, or name:path in an allowed folder.
        offset: Character to start at; a long file says how to go on.
        pages: Such as 12 or 12-14.
    """
    if pages or path.lower().endswith(DOCUMENTS):
        return await _pages(ctx, path, offset, pages)
    text = await _text(ctx, path)
    return stretch(text, offset, "file_read") or "(the file is empty)"


@tool(words="Search files for {query}[ in {path}]", effect="read", reads_private=True, reads_untrusted=True)
async def file_search(ctx: Ctx, query: str, path: str = "") -> str:
    """Find what the user's files and PDFs say on something, with pages.

    Args:
        query: Words of the matter and of the file's name.
        path: Only this folder or file.
    """
    found = await ctx.use(DocumentTexts).search(query, path)
    lines = [_cited(hit) for hit in found.hits]
    if lines:
        first = found.hits[0]
        lines.append(f'[Read on: file_read path="{first.path}" pages="{first.number}". Cite file and page.]')
    if found.unread:
        lines.append(f"[{found.unread} more files are still being read; search again in a moment.]")
    return "\n".join(lines) or "No file has these words. Try others, or file_list."


@tool(words="List files[ in {path}][ named {pattern}]", effect="read", reads_private=True, reads_untrusted=True)
async def file_list(ctx: Ctx, path: str = "", pattern: str = "", deep: bool = False) -> str:
    """List the files in a folder.

    Args:
        path: The folder; all of the user's own when left out.
        pattern: Only names like *.md.
        deep: Folders inside too.
    """
    files = ctx.use(Files)
    found = [entry for entry in await files.list(path, is_deep=deep or bool(pattern)) if _fits(entry, pattern)]
    lines = [_line(ctx, entry) for entry in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"... and {len(found) - SHOWN} more: narrow it by path or pattern.")
    if not path and (names := [root.name for root in (await files.roots())[1:]]):
        lines.append(f"Allowed folders: {', '.join(f'{name}:' for name in names)}")
    return "\n".join(lines) or "Nothing is there."


async def _can_write(ctx: Ctx, path: str, text: str, replace: str) -> None:
    files = ctx.use(Files)
    root, _ = await files.place(path)
    if not root.is_writable:
        raise ToolFailed(f"The folder {root.name!r} is for reading only.")
    old = await _old(ctx, path, replace)
    content = _replaced(decoded(old, path), replace, text, path) if replace and old is not None else text
    if len(content.encode()) > WRITE_BYTES:
        raise ToolFailed(f"That is more than {WRITE_BYTES // 1_000_000} MB; write it in parts.")


async def _preview(ctx: Ctx, path: str, text: str, replace: str) -> CallPreview:
    """The file as it is beside the file as it would be. What is read for it the person alone sees."""
    found = await _raw(ctx.use(Files), path)
    old = None if found is None else decoded(found, path)
    new = _replaced(old, replace, text, path) if replace and old is not None else text
    return await asyncio.to_thread(_difference, path, old, new)


def _difference(path: str, old: str | None, new: str) -> CallPreview:
    before, after = [] if old is None else old.split("\n"), new.split("\n")  # other line ends are shown, as they hide
    if len(before) + len(after) > DIFF_LINES:
        return CallPreview(title=f"Write {path}: {counted(len(after), 'line')}", detail=new)
    rows = list(difflib.unified_diff(before, after, lineterm=""))[2:]
    if old is None:
        return CallPreview(title=f"Write {path}: new, {counted(len(after), 'line')}", detail="\n".join(rows))
    changed = max(sum(row.startswith(sign) for row in rows) for sign in "+-")
    return CallPreview(title=f"Write {path}: {counted(changed, 'line')} changed", detail="\n".join(rows))


@tool(words="Write {path}", risk="medium", idempotent=True, check=_can_write, preview=_preview)
async def file_write(ctx: Ctx, path: str, text: str, replace: str = "") -> str | Output:
    """Write a file, or replace one passage in it.

    Args:
        path: Such as notes.md; folders are made.
        text: The new content, or the new passage.
        replace: The old passage, exactly and once in the file; empty writes the whole file.
    """
    files = ctx.use(Files)

    async def find() -> dict[str, Any]:
        old = await _old(ctx, path, replace)
        return {"before": None if old is None else old.hex()}

    target = await ctx.target(find)
    if replace:
        ctx.note_private("the file's text")  # here too: a call that is run again does not look it up anew
    old = None if target["before"] is None else bytes.fromhex(target["before"])
    content = _replaced(decoded(old, path), replace, text, path) if replace and old is not None else text
    new = content.encode()
    if new == old:
        ctx.note_private("the file's text")
        return Output(text=f"{path} has that content already.", words=NO_CHANGE)
    if not ctx.is_again or await _raw(files, path) != new:  # else an earlier try has written it
        await files.write(path, new, expected="" if old is None else version_of(old))
    before = None if old is None else {"hex": old.hex()}
    ctx.leave_undo(target=path, before=before, expected=version_of(new), label="Put the file back")
    return f"{'Wrote' if old is None else 'Changed'} {path} ({len(content)} characters)."


@tool(words="Compare {old} with {new}", effect="read", reads_private=True, reads_untrusted=True)
async def file_diff(ctx: Ctx, old: str, new: str) -> str:
    """Show how two files differ.

    Args:
        old: Path of the one.
        new: Path of the other.
    """
    before, after = await _text(ctx, old), await _text(ctx, new)
    if len(before) + len(after) > DIFF_CHARACTERS:
        raise ToolFailed(f"Together they are longer than {DIFF_CHARACTERS} characters: too long to compare.")
    made = difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="")
    return beginning(await asyncio.to_thread("\n".join, made), "left out") or "They are the same."


@tool(words="Search files for {pattern}[, in {path}]", effect="read", reads_private=True, reads_untrusted=True)
async def file_grep(ctx: Ctx, pattern: str, path: str = "", names: str = "", ignore_case: bool = False) -> str:
    """Search inside files for lines that match a pattern.

    Args:
        pattern: Regular expression.
        path: Folder or file; all when left out.
        names: Only files like *.py.
        ignore_case: Capitals do not matter.
    """
    grep = scan.load("cortex.integrations.grep")
    files, wanted = ctx.use(Files), grep.compiled(pattern, ignore_case=ignore_case)
    lines: list[str] = []
    deadline_s = ticks_s() + grep.TOTAL_S
    for name in await _names_below(files, path, names):
        if ticks_s() > deadline_s:
            return "\n".join([*lines, "... stopped after some seconds: narrow the path."])
        try:
            text = decoded(await files.read(name, limit_bytes=grep.FILE_BYTES), name)
        except (ToolFailed, NotFound):
            continue
        hits = await grep.found(wanted, text, HITS)
        lines += [f"{name}:{line.number}: {line.text.strip()[:HIT_CHARACTERS]}" for line in hits]
        if len(lines) > HITS:
            return "\n".join([*lines[:HITS], "... and more: narrow the pattern or the path."])
    return "\n".join(lines) or "Nothing matches."


@tool(words="Check the syntax of {path}", effect="read", reads_private=True, reads_untrusted=True)
async def file_syntax_check(ctx: Ctx, path: str) -> str:
    """Check a code or data file for syntax errors.

    Args:
        path: A .py, .json, .yaml, .toml, .sh, .sql or .js file.
    """
    text = await _text(ctx, path)
    syntax = scan.load("cortex.integrations.syntax")
    kind: str = syntax.kind_of(path, text)
    try:
        sandbox = ctx.use(Sandbox)
    except NotFound:
        sandbox = None
    fault: str = await syntax.check(kind, path, text, sandbox)
    said = f"{path} is not well-formed {kind}: {fault}" if fault else f"{path} is well-formed {kind}."
    return beginning(said, "left out")


@tool(words="Look at size and date of {path}", effect="read", reads_private=True, reads_untrusted=True)
async def file_stat(ctx: Ctx, path: str) -> str:
    """Tell a file's size, kind and time of last change.

    Args:
        path: The file or folder.
    """
    return _line(ctx, await ctx.use(Files).stat(path))


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put the file's former content back, or remove a file that the call made. Conflict when it changed since."""
    files = ctx.use(Files)
    was = await _raw(files, target)
    redone_by = None if was is None else {"hex": was.hex()}
    if before is None:
        await files.remove(target, expected=expected)
        ctx.leave_redo(target=target, before=redone_by, expected="")
        return f"{target} is removed again."
    old = bytes.fromhex(before["hex"])
    await files.write(target, old, expected=expected)
    ctx.leave_redo(target=target, before=redone_by, expected=version_of(old))
    return f"{target} is as it was."


async def _old(ctx: Ctx, path: str, replace: str) -> bytes | None:
    """Return what a write would change, None for nothing. That a passage is in it, or it is no file, counts as read."""
    files = ctx.use(Files)
    if replace:
        ctx.note_private("the file's text")
        return await files.read(path, limit_bytes=WRITE_BYTES)
    try:
        return await _raw(files, path)
    except ToolFailed:
        ctx.note_private("what stands there")
        raise


async def _raw(files: Files, path: str) -> bytes | None:
    """Return what stands there, None for nothing."""
    try:
        return await files.read(path, limit_bytes=WRITE_BYTES)
    except NotFound:
        return None


def _replaced(old: str, passage: str, text: str, path: str) -> str:
    """The text with the passage replaced; as it is where that was done before."""
    times = old.count(passage)
    if times == 0 and text and text in old:
        return old
    if times != 1:
        raise ToolFailed(f"That passage is {times} times in {path!r}; it must be there exactly once.")
    return old.replace(passage, text)


def _cited(hit: DocumentHit) -> str:
    title = f" ({hit.title})" if hit.title and hit.title not in hit.passage else ""
    return f"{hit.path}, {'page' if hit.is_paged else 'part'} {hit.number}{title}: {hit.passage}"


async def _pages(ctx: Ctx, path: str, offset: int, pages: str) -> str:
    """Pages of a document, each under its name and number; without a choice the contents and the first ones."""
    first, last = _range(pages)
    found = await ctx.use(DocumentTexts).read(path, first, last)
    word = "page" if found.is_paged else "part"
    if not found.pages:
        raise ToolRetry(f"{path!r} has {found.count} {word}s.")
    last = found.pages[-1].number
    head = "" if pages or offset else _contents(found.outline)
    text = "\n\n".join(f"[{path}, {word} {page.number} of {found.count}]\n{page.text}" for page in found.pages)
    shown = stretch(head + text, offset, f"file_read, pages={first}-{last}")
    if last < found.count:
        shown += f"\n[{found.count} {word}s; the next with pages={last + 1}-{min(last + PAGES_AT_ONCE, found.count)}]"
    return f"{shown}\n[{found.note}]" if found.note else shown


def _range(pages: str) -> tuple[int, int]:
    """The first and the last page that are meant."""
    if not pages:
        return 1, PAGES_AT_ONCE
    begin, dash, end = pages.replace(" ", "").partition("-")
    numbers = [begin, end or begin] if dash else [begin, begin]
    if not all(number.isdecimal() and 0 < int(number[:9]) <= PAGES_MOST for number in numbers):
        raise ToolRetry(f"Write pages as 12 or 12-14, not {pages[:20]!r}.")
    first, last = int(numbers[0]), int(numbers[1])
    return min(first, last), min(max(first, last), min(first, last) + PAGES_AT_ONCE * 2)


def _contents(outline: Sequence[str]) -> str:
    """The headings with their pages, as many as fit."""
    lines, size = list[str](), 0
    for line in outline:
        size += len(line)
        if size > CONTENTS_CHARACTERS:
            lines.append("...")
            break
        lines.append(line)
    return "Contents:\n" + "\n".join(lines) + "\n\n" if lines else ""


async def _text(ctx: Ctx, path: str) -> str:
    return decoded(await ctx.use(Files).read(path), path)


async def _names_below(files: Files, path: str, names: str) -> list[str]:
    """The files that `path` means: itself, or all below it whose names fit."""
    if path and (await files.stat(path)).kind == "file":
        return [path]
    found = await files.list(path, is_deep=True)
    return [entry.path for entry in found if entry.kind == "file" and _fits(entry, names)]


def _fits(entry: FolderItem, pattern: str) -> bool:
    return not pattern or fnmatch.fnmatch(entry.path.rpartition("/")[2].casefold(), pattern.casefold())


def _line(ctx: Ctx, entry: FolderItem) -> str:
    if entry.kind == "folder":
        return f"{entry.path}/"
    kind = "" if entry.kind == "file" else f", {entry.kind}"
    return f"{entry.path} ({entry.size_bytes} bytes, {moment(entry.changed_at, ctx.user.time_zone)}{kind})"
