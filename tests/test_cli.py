"""The commands, run as programs: no daemon, no network, one line for what is wrong."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from cortex import VERSION
from cortex.storage.revisions import newest
from tests.children import environment, run
from tests.file_server import file_server
from tests.living_house import living_house
from tests.patience import PATIENCE_S
from tests.real_encoder import real_folder

SEARCH_CARD = "/admin/integrations#web_search"


def cortex(home: Path, *words: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return run(words, env=environment(home, **more), cwd=home.parent, given=given)


def parsed(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_hello_costs_what_was_promised(tmp_path: Path) -> None:
    parts = parsed(cortex(tmp_path / "home", "prompt-size", "hello", "--role", "orchestrator", "--json"))
    counted = ["system", "tools", "catalog", "notes", "message", "total", "model_calls"]
    assert list(parts) == [*counted, "user", "rank", "role", "model", "profile", "window_tokens"]
    assert parts["total"] == sum(parts[name] for name in ("system", "tools", "catalog", "notes", "message"))
    assert parts["total"] <= 350
    assert parts["model_calls"] == 1


@pytest.mark.parametrize("command", ["prompt-size", "explain"])
def test_a_plan_says_for_which_kind_of_model_it_is(tmp_path: Path, command: str) -> None:
    home, asked = tmp_path / "home", "add milk and eggs to my shopping list"
    assert parsed(cortex(home, command, asked, "--json"))["profile"] == "none"
    assert "local" in cortex(home, command, asked, "--profile", "local").stdout
    refused = cortex(home, command, asked, "--profile", "gemini")
    assert refused.returncode == cortex(home, command, asked, "--mode", "gemini").returncode == 2
    assert all(name in refused.stderr for name in ("anthropic", "openai", "local", "none"))


@pytest.fixture
def peopled(tmp_path: Path) -> Path:
    """A home with an admin who has a model on this machine and one of Anthropic's, and a member with none."""

    async def used() -> None:
        async with living_house(tmp_path / "home") as house:
            for form in (
                {"name": "small", "provider": "openai", "model": "qwen3", "base_url": "http://127.0.0.1:11434/v1"},
                {"name": "large", "provider": "anthropic", "model": "claude-sonnet-4"},
            ):
                await house.cortex.models.save(house.admin, form)
            await house.cortex.preferences.change(house.member, {"role": "chat"}, roles=("chat",))

    asyncio.run(used())
    return tmp_path / "home"


@pytest.mark.parametrize("command", ["prompt-size", "explain"])
def test_a_plan_is_made_with_the_rights_and_the_model_of_a_person(peopled: Path, command: str) -> None:
    def facts(*words: str) -> dict[str, Any]:
        told = parsed(cortex(peopled, command, "run df -h in the shell", "--json", *words))
        return {name: told[name] for name in ("user", "rank", "role", "model", "profile")}

    of_admin = {"user": "ada", "rank": "admin", "role": "orchestrator", "model": "small", "profile": "local"}
    assert facts("--user", "ada") == of_admin
    assert facts("--user", "ada", "--model", "large") == {**of_admin, "model": "large", "profile": "anthropic"}
    assert facts("--user", "ada", "--profile", "none") == {**of_admin, "profile": "none"}
    assert facts("--user", "bob")["role"] == "chat"
    assert facts("--model", "large") == {**of_admin, "user": "", "model": "large", "profile": "anthropic"}
    told = cortex(peopled, command, "hello", "--user", "ada").stdout
    assert "ada (admin)" in told
    assert ("model small" in told, "profile local" in told) == (True, True)
    assert "again is free" in told


@pytest.mark.parametrize("command", ["prompt-size hello", "explain hello"])
def test_a_name_that_is_none_is_one_line_that_says_what_there_is(peopled: Path, command: str) -> None:
    whom = cortex(peopled, *command.split(), "--user", "nobody")
    assert (whom.returncode, "'nobody'" in whom.stderr, "ada, bob" in whom.stderr) == (1, True, True)
    which = cortex(peopled, *command.split(), "--user", "ada", "--model", "gpt")
    assert (which.returncode, "'gpt'" in which.stderr, "large, small" in which.stderr) == (1, True, True)


def test_explain_says_what_would_be_sent_and_why(tmp_path: Path) -> None:
    told = parsed(cortex(tmp_path / "home", "explain", "add milk to my shopping list", "--json", "--assume-configured"))
    assert "task_create" in [one["name"] for one in told["sent"]]
    assert all({"name", "form", "tokens"} <= one.keys() for one in told["sent"])
    assert told["decisions"]
    assert told["tokens"] > 0
    words = cortex(tmp_path / "home", "explain", "add milk to my shopping list")
    assert "task_create" in words.stdout


@pytest.mark.parametrize(
    "words", [("tools",), ("explain", "hello"), ("prompt-size", "hello")], ids=lambda words: words[0]
)
def test_a_role_that_is_none_is_one_line_that_names_the_roles(words: tuple[str, ...], tmp_path: Path) -> None:
    done = cortex(tmp_path / "home", *words, "--role", "nosuch")
    assert (done.returncode, done.stdout) == (1, "")
    assert ("'nosuch'" in done.stderr, "rank admin" in done.stderr) == (True, True)
    assert "orchestrator" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_chat_role_is_given_no_tool(tmp_path: Path) -> None:
    assert parsed(cortex(tmp_path / "home", "explain", "add milk to my list", "--role", "chat", "--json"))["sent"] == []


def test_a_member_is_never_given_the_shell(tmp_path: Path) -> None:
    words = ("explain", "run df -h in the shell", "--json", "--assume-configured", "--rank", "member")
    told = parsed(cortex(tmp_path / "home", *words))
    assert "shell_exec" not in [one["name"] for one in told["sent"]]


def test_tools_lists_every_tool_with_its_price(tmp_path: Path) -> None:
    rows = parsed(cortex(tmp_path / "home", "tools", "--json"))
    keys = {"name", "category", "risk", "admin", "confirm", "tokens_full", "tokens_stub", "configured"}
    assert all(row.keys() == (keys if row["configured"] else keys | {"setup"}) for row in rows)
    shell = next(row for row in rows if row["name"] == "shell_exec")
    assert (shell["risk"], shell["admin"], shell["confirm"]) == ("high", True, True)


def test_tools_says_what_a_category_still_needs(tmp_path: Path) -> None:
    rows = {row["name"]: row for row in parsed(cortex(tmp_path / "home", "tools", "--json"))}
    search = {"text": "Web search is not set up. An admin can do it under Integrations.", "page": SEARCH_CARD}
    assert (rows["web_search"]["configured"], rows["web_search"]["setup"]) == (False, search)
    assert rows["cortex_update"]["configured"]
    assert rows["cron_add"]["configured"]
    assert rows["ae_task_list"]["configured"]
    words = cortex(tmp_path / "home", "tools").stdout
    assert words.splitlines()[0].split()[:5] == ["category", "tool", "risk", "full", "stub"]
    assert search["text"] in words


def test_tools_lists_what_a_role_may_use_as_if_all_were_set_up(tmp_path: Path) -> None:
    words = ("tools", "--json", "--assume-configured", "--role", "coder", "--rank", "member")
    rows = parsed(cortex(tmp_path / "home", *words))
    assert {row["category"] for row in rows} == {"file", "git", "meta", "skills"}
    assert all(row["configured"] for row in rows)
    ready = parsed(cortex(tmp_path / "home", "tools", "--json", "--role", "coder"))
    assert {row["category"] for row in ready} <= {"file", "git", "skills", "system", "meta"}


def test_the_sentence_model_is_told_and_refused_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert parsed(cortex(home, "encoder", "status", "--json"))["is_there"] is False
    assert f"{home}/encoder" in cortex(home, "encoder", "status").stdout
    with file_server({"/model.onnx": b"another"}) as server:
        other = cortex(home, "encoder", "install", "--from", server.address)
    assert (other.returncode, other.stdout) == (1, "")
    assert ("/model.onnx has" in other.stderr, "SHA-256" in other.stderr) == (True, True)
    half = cortex(home, "encoder", "install", "--from", server.address, "--model-sha256", "0" * 64)
    assert (half.returncode, "both digests" in half.stderr) == (1, True)
    assert not (home / "encoder").exists()


def test_a_sentence_model_that_cannot_be_used_is_told_by_status_and_explain(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"no model")
    home, named = tmp_path / "home", {"CORTEX_ENCODER_FOLDER": str(folder)}
    status = cortex(home, "encoder", "status", **named)
    assert status.returncode == 1
    assert status.stdout.startswith(f"{folder} cannot be used: ")
    explained = cortex(home, "explain", "what is on my list", "--recipe", "vector", **named)
    assert "left out: " in explained.stdout


def test_the_status_says_what_the_sentence_model_does(tmp_path: Path) -> None:
    folder = real_folder(tmp_path / "real")
    status = cortex(tmp_path / "home", "encoder", "status", CORTEX_ENCODER_FOLDER=str(folder))
    assert "connected servers" in status.stdout


@pytest.mark.names_its_database("a home whose file has no tables yet")
def test_the_doctor_says_what_is_wrong_and_how_to_mend_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = cortex(home, "doctor", "--json")
    assert before.returncode == 1
    assert {"name": "database", "state": "bad"}.items() <= _finding(before, "database").items()
    assert "cortex migrate" in _finding(before, "database")["mend"]
    assert newest() in cortex(home, "migrate").stdout
    (home / "secret.key").chmod(0o644)
    after = cortex(home, "doctor")
    assert after.returncode == 1
    assert "chmod 600" in after.stdout
    assert "database" in after.stdout


def test_the_doctor_tells_of_what_others_may_read_and_of_what_others_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert cortex(home, "migrate").returncode == 0
    assert _finding(cortex(home, "doctor", "--json"), "files")["state"] == "good"
    (home / "diary.txt").touch()
    (home / "diary.txt").chmod(0o644)
    loose = _finding(cortex(home, "doctor", "--json"), "files")
    assert (loose["state"], "'diary.txt'" in loose["text"]) == ("bad", True)
    assert f"chmod -R go= {home}" in loose["mend"]
    assert (home / "diary.txt").stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to somebody else")
@pytest.mark.parametrize(("theirs", "named"), [("diary.txt", "'diary.txt'"), (".", "'.'")], ids=["a file", "HOME"])
def test_the_doctor_tells_what_another_user_owns(tmp_path: Path, theirs: str, named: str) -> None:
    home = tmp_path / "home"
    assert cortex(home, "migrate").returncode == 0
    (home / "diary.txt").touch(mode=0o600)
    os.chown(home / theirs, 12_345, 12_345)
    foreign = _finding(cortex(home, "doctor", "--json"), "files")
    assert (foreign["state"], f"another user owns {named}." in foreign["text"]) == ("bad", True)
    assert f"chown -R {os.geteuid()} {home}" in foreign["mend"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to somebody else")
@pytest.mark.parametrize("command", [("migrate",), ("user", "list"), ("encoder", "status")], ids=" ".join)
def test_a_command_leaves_the_home_of_another_user_alone(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12_345, 12_345)
    refused = cortex(home, *command)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (f"CORTEX_HOME: '{home}'" in refused.stderr, "number 12345" in refused.stderr) == (True, True)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("command", [("migrate",), ("user", "add", "Ada"), ("user", "setup-link")], ids=" ".join)
def test_what_a_command_makes_is_its_owners_alone(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    done = run(command, env=environment(home), cwd=tmp_path, umask=0)
    assert done.returncode == 0, done.stderr
    made = {str(one.relative_to(home)): one.stat().st_mode & 0o077 for one in [home, *home.rglob("*")]}
    assert {"secret.key", "."} <= set(made)
    assert set(made.values()) == {0}


def _finding(done: subprocess.CompletedProcess[str], name: str) -> dict[str, str]:
    found: list[dict[str, str]] = json.loads(done.stdout)
    return next(one for one in found if one["name"] == name)


def test_people_are_added_listed_and_reset(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "/setup#" in cortex(home, "user", "setup-link").stdout
    added = cortex(home, "user", "add", "Ada", "--admin", "--password-stdin", given="a few words in a row\n")
    assert added.returncode == 0, added.stderr
    assert "/welcome#" in cortex(home, "user", "add", "Bob").stdout
    assert parsed(cortex(home, "user", "list", "--json")) == [
        {"name": "Ada", "rank": "admin", "is_active": True},
        {"name": "Bob", "rank": "member", "is_active": True},
    ]
    assert "/welcome#" in cortex(home, "user", "reset", "bob").stdout
    late = cortex(home, "user", "setup-link")
    assert late.returncode == 1
    assert "already exists" in late.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CORTEX_PORT", "many"),
        ("CORTEX_MAX_ROUNDS", "99"),
        ("CORTEX_DATABASE_URL", "mysql://x"),
        ("CORTEX_ENCODER_FOLDER", "/no/such/folder"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line(name: str, value: str, tmp_path: Path) -> None:
    done = cortex(tmp_path / "home", "serve", **{name: value})
    assert done.returncode == 1
    assert done.stderr.startswith(f"cortex: {name}: ")
    assert len(done.stderr.splitlines()) == 1


def test_it_refuses_to_listen_to_others_before_there_is_an_account(tmp_path: Path) -> None:
    done = cortex(tmp_path / "home", "serve", CORTEX_HOST="0.0.0.0", CORTEX_PORT="0")  # noqa: S104
    assert done.returncode == 1
    assert "no account exists" in done.stderr


def test_serve_prints_the_link_answers_and_ends_on_sigterm(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with subprocess.Popen(
        [sys.executable, "-m", "web", "serve"],
        cwd=tmp_path,
        env=environment(home, CORTEX_PORT="0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as daemon:
        assert daemon.stdout
        try:
            place = re.fullmatch(r"Cortex is at (http://127\.0\.0\.1:\d+)\n", daemon.stdout.readline())
            assert place
            assert re.fullmatch(rf"Set up.*: {place[1]}/setup#\S{{40,}}\n", daemon.stdout.readline())
            with urllib.request.urlopen(f"{place[1]}/healthz", timeout=PATIENCE_S) as answer:  # noqa: S310  (our own)
                assert answer.read() == b"ok\n"
            second = cortex(home, "serve", CORTEX_PORT="0")
            assert f"process {daemon.pid} already serves" in second.stderr
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(timeout=PATIENCE_S) == 0
        finally:
            daemon.kill()


def test_it_says_its_version(tmp_path: Path) -> None:
    assert cortex(tmp_path / "home", "--version").stdout == f"Cortex {VERSION}\n"
    assert not (tmp_path / "home").exists()
