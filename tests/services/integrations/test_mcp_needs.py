"""Programs outside /usr: what they need is proposed by exact paths, given when an admin ticks it, and no more."""

import json
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import NotAllowed, ToolFailed, UserError
from cortex.integrations.mcp.needs import Plan
from cortex.ports.mcp import McpServers
from cortex.services.integrations.mcp import Choice
from cortex.storage.audit import AuditRepository
from tests import hostile_mcp
from tests.living_house import LivingHouse
from tests.mcp_house import listed
from tests.services.integrations.test_mcp_servers import NO_SANDBOX

PROGRAM = Path(hostile_mcp.__file__).read_text()
pytestmark = pytest.mark.skipif(NO_SANDBOX, reason="no sandbox works on this machine")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment of Python as pipx and venv make them, with a server installed in it; its folder."""
    root = tmp_path / "apps" / "shop-server"
    venv.create(root, symlinks=True, with_pip=False)
    script = root / "bin" / "shop-server"
    script.write_text(f"#!{root}/bin/python3\n{PROGRAM}")
    script.chmod(0o755)
    return root


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    file = folder / "listing.json"
    file.write_text(json.dumps([listed("sell", is_read=True)]))
    return file


async def paste(house: LivingHouse, *command: object, **more: Any) -> str:
    entry = {"command": str(command[0]), "args": [str(one) for one in command[1:]], **more}
    (name,) = await house.cortex.mcp_tools.paste(house.admin, json.dumps({"mcpServers": {"shop": entry}}))
    return name


async def test_any_argument_is_looked_at_and_nothing_that_holds_keys_is_offered(
    house: LivingHouse, environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    keys = ("/etc/shadow", "/etc/ssh", "/etc/ssl/private")
    odd = ("x" * 2_000, f"/{'x' * 300}/y", f"{tmp_path}/closed/a/b.db", "/proc/1/root/etc", "{" * 300)
    await paste(house, environment / "bin" / "shop-server", *keys, *odd, env={"A": f"/{'y' * 300}", "B": "/etc/shadow"})
    assert await proposed(house) == outside(environment)


async def test_pasted_names_are_made_usable_and_all_are_set_up_or_none(house: LivingHouse) -> None:
    entry = {"command": "/usr/bin/true"}

    async def given(*names: str) -> object:
        text = json.dumps({"mcpServers": dict.fromkeys(names, entry)})
        return await house.cortex.mcp_tools.paste(house.admin, text)

    assert await given("io.github.ada/files", "n" * 100) == ["io-github-ada-files", "n" * 40]
    with pytest.raises(UserError, match=r"already exists: a-b\. Nothing was added"):
        await given("c", "A b", "a/b")
    with pytest.raises(UserError, match=r"at most 20 servers\. Nothing was set up"):
        await given(*(f"more{number}" for number in range(19)))
    assert len(await house.cortex.mcp_tools.servers()) == 2


async def test_a_relative_path_is_told_and_a_second_yes_is_one(
    house: LivingHouse, environment: Path, listing: Path
) -> None:
    await paste(house, environment / "bin" / "shop-server", listing)
    boxes = await proposed(house) - {"network"}
    for _ in range(2):
        assert await house.cortex.mcp_needs.allow(house.admin, "shop", boxes) == "Allowed."
    await house.cortex.mcp_tools.paste(house.admin, json.dumps({"mcpServers": {"near": {"command": "./near"}}}))
    with pytest.raises(ToolFailed, match=r"\./near is not in the folder of this server: enter the whole path"):
        await house.cortex.mcp_tools.look(house.admin, "near")


async def plan(house: LivingHouse) -> Plan:
    found = await house.cortex.mcp_needs.of("shop")
    assert found is not None
    return found.plan


async def proposed(house: LivingHouse) -> set[str]:
    """The boxes that are ticked."""
    found = await plan(house)
    boxes = {f"{'change' if one.is_changed else 'read'}:{one.path}" for one in found.needs if one.is_ticked}
    return boxes | ({"network"} if found.network else set()) | ({"install"} if found.package else set())


async def works(house: LivingHouse) -> bool:
    """Whether its tool can be called, once it is allowed."""
    await house.cortex.mcp_tools.look(house.admin, "shop")
    seen = [one for one in await house.cortex.mcp_tools.tools("shop") if one.row.seen]
    choices = [Choice(name=one.row.name, digest=one.row.seen_digest, is_allowed=True) for one in seen]
    await house.cortex.mcp_tools.choose(house.admin, "shop", choices)
    return await house.cortex.scope.provide(McpServers, house.admin.id).call("shop", "sell", {"say": "12"}) == "12"


def outside(*folders: Path) -> set[str]:
    """The boxes for reading these, and the Python below an environment where that is not the system's."""
    python = Path(sys.executable).resolve()
    base = () if python.is_relative_to("/usr") else (python.parent.parent,)
    return {f"read:{one}" for one in (*folders, *base)}


@pytest.mark.parametrize("is_linked", [False, True], ids=["by its path", "by a link elsewhere"])
async def test_a_program_in_an_environment_is_pasted_confirmed_and_used(
    house: LivingHouse, environment: Path, listing: Path, tmp_path: Path, is_linked: bool
) -> None:
    program = environment / "bin" / "shop-server"
    link = tmp_path / "bin" / "shop-server"
    link.parent.mkdir()
    link.symlink_to(program)
    await paste(house, link if is_linked else program, listing, env={"API_PASSPHRASE": "not-a-real-one"})
    with pytest.raises(ToolFailed, match="is hidden by the sandbox: allow its folder on the page of its tools"):
        await house.cortex.mcp_tools.look(house.admin, "shop")
    boxes = await proposed(house)
    assert boxes == {*outside(environment), f"read:{listing}"} | ({"network"} & boxes)
    await house.cortex.mcp_needs.allow(house.admin, "shop", boxes - {"network"})
    assert await works(house)
    row = await house.cortex.mcp_tools.server("shop")
    assert row.settings["command"].split()[1:] == [str(program), str(listing)]
    assert not row.settings["has_network"]
    kind = house.cortex.integrations.kind("mcp")
    assert await house.cortex.integrations.secrets.kept(kind, "shop") == {
        "environment": "API_PASSPHRASE=not-a-real-one"
    }
    assert "not-a-real-one" not in json.dumps(row.settings)


async def test_a_script_is_proposed_with_its_folder_and_its_interpreter(
    house: LivingHouse, environment: Path, listing: Path, tmp_path: Path
) -> None:
    script = tmp_path / "project" / "dist" / "server.py"
    script.parent.mkdir(parents=True)
    (tmp_path / "project" / "package.json").write_text("{}")
    script.write_text(PROGRAM)
    await paste(house, "/usr/bin/python3", script, listing)
    assert await proposed(house) == {f"read:{tmp_path}/project", f"read:{listing}"}
    await house.cortex.mcp_needs.allow(house.admin, "shop", await proposed(house))
    assert await works(house)


async def test_a_script_whose_interpreter_lies_elsewhere_is_started_by_it(
    house: LivingHouse, listing: Path, tmp_path: Path
) -> None:
    node = tmp_path / "node" / "bin" / "node"  # as nvm keeps them; this one is a small shell script
    node.parent.mkdir(parents=True)
    node.write_text('#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
    node.chmod(0o755)
    modules = tmp_path / "npm" / "lib" / "node_modules"
    script = modules / "shop" / "dist" / "index.js"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!{node}\n{PROGRAM}")
    script.chmod(0o755)
    link = tmp_path / "npm" / "bin" / "shop"
    link.parent.mkdir()
    link.symlink_to(script)
    await paste(house, link, listing)
    assert await proposed(house) >= {f"read:{modules}", f"read:{listing}"}
    await house.cortex.mcp_needs.allow(house.admin, "shop", await proposed(house))
    assert await works(house)


async def test_a_program_below_a_link_that_was_given_before_goes_on_working(
    house: LivingHouse, environment: Path, listing: Path, tmp_path: Path
) -> None:
    link = tmp_path / "by-link"
    link.symlink_to(environment)
    script = environment / "bin" / "shop-server"
    script.write_text(f"#!/usr/bin/python3\n{PROGRAM}")
    form = {"command": f"{link}/bin/shop-server {listing}", "readable": (str(link), str(listing.parent))}
    await house.cortex.integrations.save(house.admin, "mcp", "shop", form, is_new=True)
    assert await works(house)


async def test_nothing_of_cortexs_own_and_no_home_is_ever_proposed(
    house: LivingHouse, environment: Path, tmp_path: Path
) -> None:
    own = house.cortex.settings.home
    link, key = tmp_path / "link", tmp_path / "key.json"
    link.symlink_to(own)
    key.symlink_to(own / "secret.key")
    inside = own / "server.py"
    inside.write_text("")
    named = [
        own,
        own.parent,
        own / "secret.key",
        link,
        link / "files",
        key,
        "/",
        Path.home(),
        Path.home() / ".ssh",
        "/etc",
    ]
    await paste(house, environment / "bin" / "shop-server", *named, inside, env={"CONFIG": str(own / "cortex.db")})
    found = [Path(one.path) for one in (await plan(house)).needs]
    assert set(map(str, found)) == {one.removeprefix("read:") for one in outside(environment)}
    for path in (own, own / "secret.key", link, key, Path.home(), Path("/etc")):
        with pytest.raises(UserError, match="not what is proposed"):
            await house.cortex.mcp_needs.allow(house.admin, "shop", {f"read:{path}"})


async def test_folders_and_files_that_the_command_names_are_proposed_each_for_what_it_is(
    house: LivingHouse, tmp_path: Path
) -> None:
    data, documents, odd = tmp_path / "data", tmp_path / "documents", tmp_path / "with space, comma"
    for folder in (data, documents, odd):
        folder.mkdir()
    (documents / "settings.json").write_text("{}")
    named = [f"--db-path={data}/new.db", documents, f"sqlite://{documents}/settings.json", "https://x.example/y", odd]
    await paste(house, "/usr/bin/python3", "-m", "x", *named, env={"MEMORY_FILE_PATH": f"{data}/memory.json"})
    assert await proposed(house) == {f"change:{data}", f"read:{documents}", f"read:{odd}", "network"}
    await house.cortex.mcp_needs.allow(house.admin, "shop", {f"read:{odd}", f"read:{documents}"})
    card = await house.cortex.integrations.card("mcp", "shop")
    typed = {one.name: one.value for one in card.fields}
    await house.cortex.integrations.save(house.admin, "mcp", "shop", typed, is_new=False)  # as the card shows it
    assert set((await house.cortex.mcp_tools.server("shop")).settings["readable"]) == {str(odd), str(documents)}
    assert all(one.may_change for one in (await plan(house)).needs)


async def test_only_an_admin_gives_and_it_is_audited(house: LivingHouse, environment: Path, listing: Path) -> None:
    await paste(house, environment / "bin" / "shop-server", listing)
    with pytest.raises(NotAllowed):
        await house.cortex.mcp_needs.allow(house.member, "shop", set())
    await house.cortex.mcp_needs.allow(house.admin, "shop", {f"read:{environment}"})
    rows = await house.cortex.runtime.db.repository(AuditRepository).list()
    saved = [row for row in rows if row.action == "integration.saved" and str(environment) in row.detail]
    assert {row.actor for row in saved} == {house.admin.id}
    assert any(str(environment) in json.loads(row.detail)["settings"]["readable"] for row in saved)


async def test_keys_do_not_get_the_network_by_a_box_once_a_server_is_known(
    house: LivingHouse, environment: Path, listing: Path
) -> None:
    await paste(house, environment / "bin" / "shop-server", listing, env={"PASSPHRASE": "not-a-real-one"})
    await house.cortex.mcp_needs.allow(house.admin, "shop", await proposed(house) - {"network"})
    assert await works(house)
    with pytest.raises(UserError, match="Enter it again"):
        await house.cortex.mcp_needs.allow(house.admin, "shop", {"network"})


async def test_what_a_program_says_that_it_misses_is_proposed_and_not_ticked(
    house: LivingHouse, tmp_path: Path
) -> None:
    missed = tmp_path / "fonts" / "fonts.conf"
    missed.parent.mkdir()
    missed.write_text("")
    await paste(house, "/usr/bin/python3", "-c", f"open('{missed.parent}/' + 'fonts.conf')")
    with pytest.raises(ToolFailed, match="No such file"):
        await house.cortex.mcp_tools.look(house.admin, "shop")
    (need,) = [one for one in (await plan(house)).needs if one.path == str(missed)]
    assert not need.is_ticked
    assert "misses" in need.why


PROBLEMS = [
    (["docker", "run", "-i", "--rm", "mcp/fetch"], "Containers are not started from here"),
    (["no-such-program-here"], "There is no program 'no-such-program-here' on this machine"),
    (["/nowhere/server"], "There is no program '/nowhere/server'"),
    (["npx", "git+https://example.org/x"], "is no name of an npm package"),
]


@pytest.mark.parametrize(("command", "said"), PROBLEMS, ids=[str(one[0][0]) for one in PROBLEMS])
async def test_what_cannot_run_here_is_said_in_words(house: LivingHouse, command: list[str], said: str) -> None:
    await paste(house, *command)
    assert said in (await plan(house)).problem
    with pytest.raises(ToolFailed, match=said):
        await house.cortex.mcp_tools.look(house.admin, "shop")
    with pytest.raises(UserError, match=said):
        await house.cortex.mcp_needs.allow(house.admin, "shop", set())


async def test_a_package_is_proposed_and_not_fetched_before_a_yes(house: LivingHouse) -> None:
    await paste(house, "npx", "-y", "some-shop-mcp@1.2.3")
    found = await plan(house)
    assert found.package is not None
    assert (found.package.kind, found.package.spec) == ("npm", "some-shop-mcp@1.2.3")
    with pytest.raises(ToolFailed, match=r"some-shop-mcp@1\.2\.3 is not installed: press Install"):
        await house.cortex.mcp_tools.look(house.admin, "shop")
    assert not (house.cortex.settings.home / "mcp-programs").exists()
