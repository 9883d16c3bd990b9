"""The configuration that makers of MCP servers print, as programs take it: read as people paste it, into forms.

Claude, Cursor, VS Code, Zed and others differ in a few words; comments, commas at the end and a missing pair of braces
are passed over. Bounded before it is read.
"""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cortex.base.json_text import parsed

TEXT_CHARACTERS, BRACKETS_MOST, DEPTH_MOST, SERVERS_MOST = 200_000, 4_000, 20, 20
UNDER = ("mcp.servers", "amp.mcpServers", "mcp", "mcpServers", "context_servers", "servers")
OWN = ("command", "url", "serverUrl", "httpUrl")
EXPECTED = 'Paste an object such as {"mcpServers": {"files": {"command": "…"}}}.'
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])|[][{}]', re.DOTALL)
_HOME = re.compile(r"^~(?=/|$)|\$HOME\b|\$\{(?:HOME|userHome|env:HOME)\}")
_TO_FILL = re.compile(
    r"\$\{[^{}]{1,60}\}|(?i:/(?:absolute/|full/)?path/to/)[^\s,]*"
    r"|<[A-Za-z][^<>]{1,60}>|\b(?i:your|insert|enter|replace)[-_ ][-_ A-Za-z]{2,60}\b"
)
_WINDOWS = ("cmd", "cmd.exe")


def entries_of(text: str) -> dict[str, Mapping[str, Any]]:
    """The servers by name. ValueError says what is wrong with the text."""
    found: Any = _read(text)  # Any: a JSON value
    inputs: Any = None
    for name in UNDER:
        inputs = found.get("inputs", inputs) if isinstance(found, dict) else inputs
        inner = found.get(name) if isinstance(found, dict) else None
        if isinstance(inner, list):  # Continue
            inner = {str(one["name"]): one for one in inner if isinstance(one, dict) and "name" in one}
        if isinstance(inner, dict) and not any(isinstance(one.get(key), str) for one in (found, inner) for key in OWN):
            found = inner
    if isinstance(found, dict) and any(key in found and not isinstance(found[key], dict) for key in OWN):
        found = {_called(found): found}
    found = {k: v for k, v in found.items() if k != "inputs"} if isinstance(found, dict) else None
    if not found or not all(isinstance(one, dict) for one in found.values()):
        raise ValueError(EXPECTED)
    if len(found) > SERVERS_MOST:
        raise ValueError(f"At most {SERVERS_MOST} servers at once.")
    inputs = inputs if isinstance(inputs, list) else ()
    asked = {str(one.get("id")): one.get("description") for one in inputs if isinstance(one, dict)}
    return {name: {**entry, "inputs": asked} for name, entry in found.items()}


def _read(text: str) -> Any:  # Any: a JSON value
    if len(text) > TEXT_CHARACTERS:
        raise ValueError(f"At most {TEXT_CHARACTERS:,} characters.")
    fenced = re.search(r"```\w*\n(.*?)\n\s*```", text, re.DOTALL)
    text = (fenced[1] if fenced else text).replace("\u00a0", " ").strip("\ufeff \t\r\n")
    depth, count, begin = 0, 0, 0
    kept: list[str] = []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth, count = depth + 1, count + 1
        elif mark in "}]":
            depth -= 1
        elif mark[0] in "/,":
            kept.append(text[begin : token.start()])
            begin = token.end()
        if depth > DEPTH_MOST or count > BRACKETS_MOST:
            raise ValueError(f"It is nested deeper than {DEPTH_MOST} levels, or too long.")
    plain = "".join(kept) + text[begin:]
    if plain.startswith('"'):  # a part of a file, without its braces
        plain = f"{{{plain.rstrip().rstrip(',')}}}"
    try:
        return parsed(plain)
    except ValueError as error:
        raise ValueError(f"This is not valid JSON: {error}.") from None


def _called(entry: Mapping[str, Any]) -> str:
    """A name for a server that came without one: of its package, else of its program or host."""
    arguments = entry.get("args")
    words = [entry.get("command"), *(arguments if isinstance(arguments, list) else ())]
    named = [one for one in words if isinstance(one, str) and re.search(r"mcp|server", one)]
    text = str((named or [entry.get("command") or entry.get("url") or entry.get("serverUrl") or "server"])[0])
    text = re.sub(r"@[\w.^~-]+$", "", text).rstrip("/")
    tidy = re.sub(r"[^A-Za-z0-9]+", "-", text.rpartition("/")[2]).strip("-")
    return re.sub(r"^(mcp-server-|server-|mcp-)|(-mcp-server|-mcp|-server)$", "", tidy)[:40] or "server"


def form_of(name: str, entry: Mapping[str, Any], home: Path | None = None) -> dict[str, Any]:
    """The fields of the card for one entry; ValueError says what is wrong with it. `home`: what `~` is."""
    command, arguments = entry.get("command") or "", entry.get("args") or []
    environment: Any = next((entry[key] for key in ("env", "environment") if entry.get(key) is not None), {})
    if isinstance(command, dict):  # Zed, before 2025
        command, arguments, environment = (
            command.get("path", ""),
            command.get("args") or [],
            command.get("env") or environment,
        )
    if isinstance(command, list) and entry.get("type") == "local" and command:  # OpenCode
        command, arguments = command[0], [*command[1:], *arguments]
    address = entry.get("url") or entry.get("serverUrl") or entry.get("httpUrl") or ""
    options = entry.get("requestInit") or {}
    headers = entry.get("headers") or (options.get("headers") if isinstance(options, dict) else None) or {}
    if not isinstance(command, str) or not isinstance(address, str) or not isinstance(arguments, list):
        raise ValueError(f"{name}: command and url are text, args is a list of text")
    if not all(isinstance(one, str | int | float) for one in arguments):
        raise ValueError(f"{name}: command and url are text, args is a list of text")
    if not all(isinstance(one, dict) for one in (environment, headers)):
        raise ValueError(f"{name}: env and headers are objects")
    if "sse" in (entry.get("type"), entry.get("transport")):
        raise ValueError(
            f"{name}: servers of the old kind (sse) are not supported; ask for its streamable HTTP address"
        )
    if entry.get("envFile"):
        raise ValueError(f"{name}: write what is in its envFile into env, then paste it again")
    values = _Values(name, entry.get("inputs") or {}, home)
    if not arguments and " " in command and not os.path.exists(command):
        command, *arguments = shlex.split(command)
    folder = values.filled(_text(entry.get("cwd") or ""))
    argv = _from_folder([command, *map(_text, arguments)], folder) if command else []
    if len(argv) > 2 and argv[0].lower() in _WINDOWS and argv[1].lower() == "/c":
        argv = argv[2:]
    return {
        "command": shlex.join([values.filled(one) for one in argv]),
        "address": values.filled(address),
        "environment": values.quoted(environment),
        "headers": values.quoted(headers),
    }


class _Values:
    """Fills in what a text leaves open, or says what a person has to put there."""

    def __init__(self, name: str, inputs: Mapping[str, Any], home: Path | None) -> None:
        self._name, self._inputs, self._home = name, inputs, home

    def filled(self, text: str) -> str:
        """The text with the person's home in it; ValueError where something else is still to be filled in."""
        if self._home is not None:
            text = _HOME.sub(str(self._home), text)
        if open_part := _TO_FILL.search(text):
            told = self._inputs.get(open_part[0].removeprefix("${input:").removesuffix("}"))
            what = f"{open_part[0]}{f' ({told})' if told else ''}"
            raise ValueError(f"{self._name}: put its own value in place of {what}, then paste it again.")
        return text

    def quoted(self, values: Mapping[str, Any]) -> str:
        """Assignments as a shell takes them; what has no value is left out."""
        given = {name: _text(value) for name, value in values.items() if value is not None}
        return " ".join(f"{name}={shlex.quote(self.filled(value))}" for name, value in given.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_folder(argv: list[str], folder: str) -> list[str]:
    """With the whole path of what lies in the folder in which it would be started."""
    if not folder.startswith("/"):
        return argv
    paths = [one if one.startswith("/") else os.path.normpath(f"{folder}/{one}") for one in argv]
    return [path if one and os.path.exists(path) else one for one, path in zip(argv, paths, strict=True)]
