"""The configurations that makers print, as people paste them: what becomes of each, and what is said of a wrong one."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import UserError
from cortex.integrations.mcp.packages import package_of
from cortex.integrations.mcp.pasted import entries_of, form_of

HOME = Path("/home/ada")
FILES = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/documents"]}
LINE = "npx -y @modelcontextprotocol/server-filesystem /srv/documents"


def commands(text: str) -> dict[str, str]:
    return {name: form_of(name, entry, HOME)["command"] for name, entry in entries_of(text).items()}


WAYS: dict[str, Any] = {
    "Claude, Cursor, Windsurf": {"mcpServers": {"files": FILES}},
    "VS Code": {"servers": {"files": {"type": "stdio", **FILES}}, "inputs": []},
    "VS Code's settings": {"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"files": FILES}}},
    "Zed": {"context_servers": {"files": {"source": "custom", **FILES, "env": {}}}},
    "Zed, before": {"context_servers": {"files": {"command": {"path": "npx", "args": FILES["args"], "env": None}}}},
    "OpenCode": {"mcp": {"files": {"type": "local", "command": ["npx", *FILES["args"]], "environment": {}}}},
    "no name around it": {"files": FILES},
    "Continue": {"mcpServers": [{"name": "files", **FILES}]},
    "the whole line": {"mcpServers": {"files": {"command": LINE}}},
    "disabled elsewhere": {"mcpServers": {"files": {**FILES, "disabled": False, "autoApprove": [], "timeout": 60}}},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_ways_of_all_programs_are_read(way: str) -> None:
    assert commands(json.dumps(WAYS[way])) == {"files": LINE}


def test_a_servers_own_object_is_given_a_name() -> None:
    found = {
        text: list(entries_of(text))
        for text in (
            json.dumps(FILES),
            '{"command": "uvx", "args": ["mcp-server-git@2026.1"]}',
            '{"url": "https://mcp.example.org/mcp"}',
            '{"command": "/opt/tools/weather-mcp"}',
        )
    }
    assert list(found.values()) == [["filesystem"], ["git"], ["mcp"], ["weather"]]


def test_comments_commas_fences_and_missing_braces_are_passed_over() -> None:
    inner = (
        '"mcpServers": {\n  // files\n  "files": {"command": "a // b", /* one\n */ "args": ["x, ]", "http://y",],},\n}'
    )
    fenced = f"```json\n{{{inner},}}\n```"
    copied = f"\ufeff{{\u00a0{inner}}}"
    for text in (
        f"{{{inner}}}",
        inner,
        fenced,
        f"Add this:\n\n{fenced}\nand start it again.",
        f"\n {inner},\n",
        copied,
    ):
        assert commands(text) == {"files": "'a // b' 'x, ]' http://y"}


def test_the_persons_home_is_filled_in_and_values_that_are_no_text_are_written() -> None:
    entry = {
        "command": "~/bin/x",
        "args": ["${HOME}/a", "$HOME/b", "${userHome}/c", 8080, True],
        "env": {"N": 3, "X": None},
    }
    form = form_of("x", entry, HOME)
    assert form["command"] == "/home/ada/bin/x /home/ada/a /home/ada/b /home/ada/c 8080 true"
    assert form["environment"] == "N=3"
    assert form_of("x", {"command": "cmd", "args": ["/c", "npx", "y"]}, HOME)["command"] == "npx y"


def test_what_lies_in_the_folder_of_its_start_gets_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    entry = {"command": "python3", "args": ["server.py", "--x"], "cwd": str(tmp_path)}
    assert form_of("x", entry, HOME)["command"] == f"python3 {tmp_path}/server.py --x"


WRONG: list[tuple[str, str]] = [
    ("{nothing", "This is not valid JSON"),
    ("[]", "Paste an object"),
    ("{}", "Paste an object"),
    ('"x"', "not valid JSON|Paste an object"),
    ('{"mcpServers": {"a": 3}}', "Paste an object"),
    (json.dumps({str(n): FILES for n in range(30)}), "At most 20 servers"),
    ("[" * 100, "nested deeper than 20"),
    ('{"a":' + "[]," * 5_000, "nested deeper than 20 levels, or too long"),
    ("x" * 300_000, "At most 200,000 characters"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_with_a_text_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        entries_of(text)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"command": "x", "env": {"TOKEN": "${input:token}"}, "inputs": {"token": "Notion token"}},
            r"\(Notion token\)",
        ),
        ({"command": "x", "env": {"API_KEY": "<your-api-key>"}}, "<your-api-key>"),
        ({"command": "x", "env": {"API_KEY": "YOUR_API_KEY"}}, "YOUR_API_KEY"),
        ({"command": "x", "args": ["--key=your_key_here"]}, "your_key_here"),
        ({"command": "x", "args": ["${workspaceFolder}"]}, "workspaceFolder"),
        ({"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${env:KEY}"}}, "env:KEY"),
        ({"command": ["x"]}, "command and url are text"),
        ({"command": "x", "args": [["y"]]}, "args is a list of text"),
        ({"command": "x", "env": []}, "env and headers are objects"),
        ({"type": "sse", "url": "https://x.example/sse"}, "old kind"),
    ],
)
def test_what_is_to_be_filled_in_or_changed_is_named(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        form_of("x", entry, HOME)


LINES: dict[str, tuple[str, str, str]] = {
    "npx -y @upstash/context7-mcp@latest --api-key k": ("npm", "@upstash/context7-mcp@latest", "--api-key k"),
    "npx --yes --package=some-tool server a": ("npm", "some-tool", "a"),
    "bunx some-mcp": ("npm", "some-mcp", ""),
    "pnpm dlx some-mcp x": ("npm", "some-mcp", "x"),
    "/opt/node/bin/npx -y -- some-mcp --y": ("npm", "some-mcp", "--y"),
    "uvx mcp-server-git --repository /r": ("pypi", "mcp-server-git", "--repository /r"),
    "uvx mcp-server-git@2026.1.2": ("pypi", "mcp-server-git==2026.1.2", ""),
    "uvx --python 3.12 --from mcp-server-git==1.0 mcp-git x": ("pypi", "mcp-server-git==1.0", "x"),
    "uvx --with pandas some-mcp": ("pypi", "some-mcp", ""),
    "uv tool run some-mcp@latest": ("pypi", "some-mcp", ""),
    "pipx run some-mcp": ("pypi", "some-mcp", ""),
}


@pytest.mark.parametrize("line", LINES)
def test_lines_that_fetch_a_package_are_read(line: str) -> None:
    found = package_of(line.split())
    assert found is not None
    assert (found.kind, found.spec, " ".join(found.arguments)) == LINES[line]


@pytest.mark.parametrize(
    "line",
    [
        "npx -y",
        "uvx",
        "npx ../evil",
        "npx git+https://x.example/y",
        "uvx --from git+https://x.example/y z",
        "npx /tmp/x",
    ],
)
def test_what_is_no_package_of_a_registry_is_refused(line: str) -> None:
    with pytest.raises(UserError):
        package_of(line.split())


def test_other_lines_name_no_package() -> None:
    assert [package_of(line.split()) for line in ("node x.js", "uv run x", "python -m y", "npm start")] == [None] * 4


@pytest.mark.parametrize(
    "line",
    [
        "npx -p good -p git+https://127.0.0.1/x.git x",
        "npx -p good --package=file:../../x x",
        "npx -p good -p /etc x",
        "npx -p good -p ../.. x",
        "npx -p good -p someone/repository x",
        "npx -p good -p other.tgz x",
        "npx -- --no-ignore-scripts",
        "npx ..",
        "npx .",
        "npx good@..",
        "npx good.tgz",
        "uvx --from good ../../../../secret.key",
        "uvx --from good /bin/sh",
        "pipx run --spec good ../../x",
    ],
)
def test_only_packages_of_a_registry_are_taken_and_only_programs_of_theirs(line: str) -> None:
    with pytest.raises(UserError, match="is no name of"):
        package_of(shlex.split(line))


def test_what_would_be_lost_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    (tmp_path / "two words").touch()
    for entry, words in (
        ({**FILES, "envFile": "/srv/.env"}, "envFile"),
        ({**FILES, "cwd": "${workspaceFolder}"}, "workspaceFolder"),
        ({"command": "node", "args": ["/path/to/build/index.js"]}, "/path/to/build/index.js"),
        ({"command": "uv", "args": ["--directory", "/ABSOLUTE/PATH/TO/weather", "run", "x.py"]}, "/ABSOLUTE/PATH/TO"),
    ):
        with pytest.raises(ValueError, match=words):
            form_of("x", entry, HOME)
    assert form_of("x", {"command": "./run", "cwd": "~"}, tmp_path)["command"] == f"{tmp_path}/run"
    assert shlex.split(form_of("x", {"command": f"{tmp_path}/two words"})["command"]) == [f"{tmp_path}/two words"]
