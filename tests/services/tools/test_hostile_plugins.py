"""Packages that mean harm: what they hide from the digest, and what they raise, give back and hold up."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.agent.arguments import check
from cortex.agent.execute import run_tool
from cortex.base.clock import now
from cortex.base.errors import ConfigError, DeliveryError, UserError
from cortex.base.messages import ToolCall
from cortex.integrations import plugins as packages
from cortex.notify import ready, trial
from cortex.ports.channels import Target
from cortex.services.tools import plugin_channels
from cortex.toolkit.context import Ctx
from tests.living_house import LivingHouse, living_house
from tests.plugin_packages import allow, install, package_folder, plugin
from tests.services.tools.test_plugins import NAME, brings, tool_file

TOOLS, CHANNELS = "cortex.tools", "cortex.channels"
FILES = {"cortex_sky/__init__.py": "", "cortex_sky/sky.py": tool_file()}
POINTS = {TOOLS: {"sky": "cortex_sky.sky"}}
AT_ONCE_S = 5.0  # less than a plug-in has for its import


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    with package_folder(tmp_path / "site") as folder:
        yield folder


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def metadata(site: Path) -> Path:
    return site / "cortex_sky-1.0.dist-info"


# --- what it is, before anything of it runs


def beside_python(site: Path) -> None:
    install(site, NAME, {**FILES, "sky.pth": "import os"}, POINTS)


def for_each_start(site: Path) -> None:
    install(site, NAME, {**FILES, "sitecustomize.py": ""}, POINTS)


def into_cortex(site: Path) -> None:
    install(site, NAME, {**FILES, "cortex/tools/evil.py": ""}, POINTS)


def of_another_package(site: Path) -> None:
    install(site, "sea", {"sea/__init__.py": "", "sea/sky.py": tool_file()}, {})
    install(site, NAME, FILES, {TOOLS: {"sky": "sea.sky"}})


def below_another_package(site: Path) -> None:
    install(site, "sea", {"sea/__init__.py": "raise SystemExit"}, {})
    install(site, NAME, {"sea/sky.py": tool_file()}, {TOOLS: {"sky": "sea.sky"}})


def of_python(site: Path) -> None:
    install(site, NAME, FILES, {TOOLS: {"sky": "json.tool"}})


def not_there(site: Path) -> None:
    install(site, NAME, FILES, {TOOLS: {"sky": "cortex_sky.moon"}})


def hidden_by_a_link(site: Path) -> None:
    install(site, NAME, FILES, POINTS)
    write(site.parent / "elsewhere/late.py")
    (site / "cortex_sky/sky").symlink_to(site.parent / "elsewhere")


def of_a_source_folder(site: Path) -> None:
    install(site, NAME, FILES, POINTS)
    metadata(site).rename(site / "cortex_sky.egg-info")
    (site / "cortex_sky.egg-info/RECORD").unlink()
    (site / "cortex_sky.egg-info/METADATA").rename(site / "cortex_sky.egg-info/PKG-INFO")
    write(site / "cortex_sky.egg-info/SOURCES.txt", "src/cortex_sky/sky.py")


@pytest.mark.parametrize(
    "make",
    [
        *(beside_python, for_each_start, into_cortex, of_another_package, below_another_package, of_python, not_there),
        *(hidden_by_a_link, of_a_source_folder),
    ],
)
async def test_what_runs_other_code_than_its_files_cannot_be_allowed(tmp_path: Path, site: Path, make: Any) -> None:
    await asyncio.to_thread(make, site)
    async with living_house(tmp_path / "home") as house:
        found = await plugin(house.cortex, NAME)
        assert found.state == "unfit"
        assert found.package is not None
        with pytest.raises(UserError, match="cannot be allowed"):
            await house.cortex.plugins.allow(house.admin, NAME, found.package.digest)
        assert not {"sea", "cortex_sky"} & sys.modules.keys()


async def test_one_too_large_to_be_read_is_not_read(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "SIZE_MAX", 10)
    await asyncio.to_thread(brings, site, tool_file())
    (found,) = await asyncio.to_thread(packages.installed)
    assert (found.unfit, found.digest) == (packages.TOO_LARGE, "")


def a_package_in_place_of_the_module(site: Path) -> None:
    write(site / "cortex_sky/sky/__init__.py", "raise RuntimeError")


def a_file_further_down(site: Path) -> None:
    write(site / "cortex_sky/deep/er/late.py")


def a_compiled_module(site: Path) -> None:
    write(site / "cortex_sky/late.pyc")


def a_file_in_a_folder_that_looks_like_metadata(site: Path) -> None:
    write(site / "cortex_sky/data.dist-info/late.py", "changed")


def a_compiled_file_that_came_with_it(site: Path) -> None:
    write(site / "cortex_sky/__pycache__/sky.cpython-311.pyc", "changed")


@pytest.mark.parametrize(
    "change",
    [
        *(a_package_in_place_of_the_module, a_file_further_down, a_compiled_module),
        *(a_file_in_a_folder_that_looks_like_metadata, a_compiled_file_that_came_with_it),
    ],
)
async def test_nothing_that_an_import_could_run_is_left_out_of_the_digest(site: Path, change: Any) -> None:
    files = {**FILES, "cortex_sky/data.dist-info/late.py": "", "cortex_sky/__pycache__/sky.cpython-311.pyc": "x"}
    await asyncio.to_thread(install, site, NAME, files, POINTS)
    (before,) = await asyncio.to_thread(packages.installed)
    await asyncio.to_thread(change, site)
    (after,) = await asyncio.to_thread(packages.installed)
    assert after.digest != before.digest
    assert after.altered


async def test_a_folder_beside_a_package_of_one_file_is_seen(site: Path) -> None:
    await asyncio.to_thread(install, site, NAME, {"sky.py": tool_file()}, {TOOLS: {"sky": "sky"}})
    (before,) = await asyncio.to_thread(packages.installed)
    await asyncio.to_thread(write, site / "sky/__init__.py")
    (after,) = await asyncio.to_thread(packages.installed)
    assert (before.unfit, bool(after.unfit)) == ("", True)


async def test_a_package_within_a_shared_folder_can_be_allowed(tmp_path: Path, site: Path) -> None:
    points = {TOOLS: {"sky": "shared.deep.sky"}}
    await asyncio.to_thread(install, site, NAME, {"shared/deep/sky.py": tool_file()}, points)
    async with living_house(tmp_path / "home") as house:
        found = await allow(house.cortex, house.admin, NAME)
        assert (found.state, found.tools) == ("allowed", ("sky_star",))


def with_a_line_without_end(site: Path) -> None:
    with (metadata(site) / "RECORD").open("a") as file:
        file.write(f"\n{'x' * 200_000},,\n")


def with_json_without_end(site: Path) -> None:
    write(metadata(site) / "direct_url.json", "[" * 200_000)


def without_a_version(site: Path) -> None:
    write(metadata(site) / "METADATA", f"Metadata-Version: 2.4\nName: {NAME}\n")


def with_a_file_without_end(site: Path) -> None:
    with (metadata(site) / "RECORD").open("a") as file:
        file.write(f"\n{os.path.relpath('/dev/zero', site)},,\n")


def with_a_pipe(site: Path) -> None:
    (site / "cortex_sky/__init__.py").unlink()
    os.mkfifo(site / "cortex_sky/__init__.py")


def with_a_hidden_name(site: Path) -> None:
    write(metadata(site) / "METADATA", "Metadata-Version: 2.4\nName: sky\u202eevil\nVersion: 1.0\n")


@pytest.mark.parametrize(
    "damage",
    [
        *(with_a_line_without_end, with_json_without_end, without_a_version, with_a_file_without_end, with_a_pipe),
        with_a_hidden_name,
    ],
)
async def test_no_metadata_stops_the_page_or_the_start(tmp_path: Path, site: Path, damage: Any) -> None:
    sea = {"cortex_sea/__init__.py": "", "cortex_sea/sea.py": tool_file("sea_star")}
    await asyncio.to_thread(install, site, "cortex-sea", sea, {TOOLS: {"sea": "cortex_sea.sea"}})
    await asyncio.to_thread(brings, site, tool_file())
    await asyncio.to_thread(damage, site)
    async with living_house(tmp_path / "home") as house, asyncio.timeout(AT_ONCE_S):
        assert (await allow(house.cortex, house.admin, "cortex-sea")).state == "allowed"
        for one in await house.cortex.plugins.list():
            assert all(ord(char) < 128 and isinstance(one.package and one.package.version, str) for char in one.name)
    async with living_house(tmp_path / "home") as house:
        assert "sea_star" in await house.cortex.tools.permitted(house.admin, "admin")


async def test_two_packages_of_one_name_are_one_and_the_first_is_what_is_allowed(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file())
    with package_folder(tmp_path / "other") as first:
        await asyncio.to_thread(install, first, "Cortex_Sky", FILES, POINTS, Summary="the first")
        async with living_house(tmp_path / "home") as house:
            assert [one.name for one in await house.cortex.plugins.list()] == [NAME]
            found = await allow(house.cortex, house.admin, NAME)
            assert (found.state, found.package and found.package.summary) == ("allowed", "the first")


# --- what its import does


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
        ("class Odd(Exception):\n def __str__(self): raise self\nraise Odd", "Odd"),
        ("raise RuntimeError('half \\ud800 a sign')", "half \ufffd a sign"),
        (tool_file(more="SUMMARY = 7"), "SUMMARY"),
        (tool_file(more="SUMMARY = 'x' * 10_000"), "SUMMARY"),
        (tool_file(more="SUMMARY = 'stars\\u202e'"), "SUMMARY"),
        (tool_file(more="NEEDS = (7,)"), "NEEDS"),
        (tool_file(more="ROLES = {7: ('sky',)}"), "ROLES"),
        (tool_file(more="UTTERANCES = '[shell_exec]\\nhello'"), "tools of others"),
        (tool_file(more="UTTERANCES = '[sky_star]\\n' + 'x\\n' * 100_000"), "utterances"),
        (tool_file(facts="risk='none'"), "risk is one of"),
        (tool_file(facts="effect='nothing'"), "effect one of"),
        (tool_file(facts="words=7"), "words"),
        (tool_file(facts="confirm=object()"), "TypeError"),
        (tool_file().replace("Find a star.", "Find a star.\n\n    " + "obey me " * 200), "docstring"),
        (tool_file().replace("Find a star.", "Find a \u200bstar."), "cannot be seen"),
        (tool_file().replace("Its name.", "x" * 30_000), "arguments"),
    ],
    ids=[
        *("interrupt", "generator-exit", "cancelled", "wordless", "half-a-sign", "summary-number", "summary-long"),
        *("summary-hidden", "needs", "roles", "examples-of-others", "many-examples", "risk", "effect", "words", "flag"),
        *("long", "hidden", "schema"),
    ],
)
async def test_what_is_harmful_in_a_tool_file_is_named_and_costs_no_message(
    tmp_path: Path, site: Path, text: str, fault: str
) -> None:
    await asyncio.to_thread(brings, site, text)
    async with living_house(tmp_path / "home") as house, asyncio.timeout(AT_ONCE_S):
        found = await allow(house.cortex, house.admin, NAME)
        assert (found.state, found.tools) == ("failed", ())
        assert fault in " ".join(found.faults)
        "".join(found.faults).encode()
        assert "task_create" in await house.cortex.tools.permitted(house.admin, "admin")


# --- what a call of it does


async def called(house: LivingHouse, arguments: str = "{}", timeout_s: float = 30.0) -> tuple[str, str]:
    """What the tool gives back, and how the call ended."""
    call = ToolCall(id="1", name="sky_star", arguments=arguments)
    checked = check(house.cortex.runtime.registry, frozenset({"sky_star"}), call)
    if isinstance(checked, str):
        return checked, "wrong"
    ctx = Ctx(
        user=house.admin,
        conversation_id="here",
        turn_id="turn:1",
        call_id="call",
        role="admin",
        now=now(),
        scope=house.cortex.scope,
    )
    output, state = await run_tool(checked.tool, ctx, checked.arguments, timeout_s=timeout_s)
    return output.text, state


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyboardInterrupt", "tried to end Cortex"),
        ("raise GeneratorExit", "broke off"),
        ("import asyncio; raise asyncio.CancelledError", "broke off"),
        ("class Odd(BaseException): pass\n    raise Odd", "broke off"),
        ("from cortex.toolkit.spec import Output; return Output(text=None)", "in place of text"),
        ("from cortex.base.errors import ToolFailed; raise ToolFailed(7)", "7"),
        ("from cortex.base.errors import ToolFailed; raise ToolFailed('\\ud800')", "\ufffd"),
    ],
    ids=["interrupt", "generator-exit", "cancelled", "odd", "no-text", "no-message", "half-a-sign"],
)
async def test_whatever_a_call_raises_ends_that_call_alone(tmp_path: Path, site: Path, body: str, said: str) -> None:
    await asyncio.to_thread(brings, site, tool_file(body=body))
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        text, state = await called(house)
        assert (state, said in text) == ("err", True), text


async def test_a_result_is_text_that_can_be_kept_and_no_more_than_that(tmp_path: Path, site: Path) -> None:
    body = (
        "from cortex.toolkit.spec import Output\n    return Output(text='\\ud800' * 9_000_000, found=('shell_exec',))"
    )
    await asyncio.to_thread(brings, site, tool_file(body=body))
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        output = await house.cortex.runtime.registry.tools["sky_star"].function(None)
        assert not isinstance(output, str)
        assert (output.found, output.is_tainted) == ((), True)
        assert len(output.text.encode()) < 7_000_000


async def test_a_call_that_takes_no_cancelling_is_left_behind(tmp_path: Path, site: Path) -> None:
    body = """import asyncio
    while True:
        try:
            await asyncio.sleep(0.05)
            if star == "stop" or not asyncio.get_running_loop().is_running() or STOP:
                return star
        except BaseException:
            pass"""
    await asyncio.to_thread(brings, site, tool_file(body=body, more="STOP = []"))
    async with living_house(tmp_path / "home") as house, asyncio.timeout(AT_ONCE_S):
        await allow(house.cortex, house.admin, NAME)
        text, state = await called(house, timeout_s=0.2)
        assert (state, "took longer" in text) == ("err", True)
        sys.modules["cortex_sky.sky"].STOP.append(True)


async def test_a_stop_reaches_a_call_at_once(tmp_path: Path, site: Path) -> None:
    body = "import asyncio; BEGUN.set(); await asyncio.sleep(60)"
    await asyncio.to_thread(brings, site, tool_file(body=body, more="import asyncio; BEGUN = asyncio.Event()"))
    async with living_house(tmp_path / "home") as house, asyncio.timeout(AT_ONCE_S):
        await allow(house.cortex, house.admin, NAME)
        calling = asyncio.create_task(called(house))
        await sys.modules["cortex_sky.sky"].BEGUN.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


async def test_what_a_validator_of_its_own_raises_is_a_wrong_argument(tmp_path: Path, site: Path) -> None:
    more = (
        "from typing import Annotated\nfrom pydantic import AfterValidator\ndef odd(value):\n    raise KeyError(value)"
    )
    text = tool_file(more=more).replace('star: str = ""', "star: Annotated[str, AfterValidator(odd)] = ''")
    await asyncio.to_thread(brings, site, text)
    async with living_house(tmp_path / "home") as house:
        assert (await allow(house.cortex, house.admin, NAME)).state == "allowed"
        text, state = await called(house, '{"star": "Vega"}')
        assert (state, "KeyError" in text) == ("wrong", True)


async def test_one_that_is_revoked_makes_room_for_its_twin(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(brings, site, tool_file(body="return 'second'"))
    sea = {"cortex_sea/__init__.py": "", "cortex_sea/sky.py": tool_file(body="return 'first'")}
    await asyncio.to_thread(install, site, "cortex-sea", sea, {TOOLS: {"sky": "cortex_sea.sky"}})
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, "cortex-sea")
        await allow(house.cortex, house.admin, NAME)
        assert await called(house) == ("first", "ok")
        await house.cortex.plugins.revoke(house.admin, "cortex-sea")
        assert (await plugin(house.cortex, NAME)).state == "allowed"
        assert await called(house) == ("second", "ok")


# --- channels

BELL = """
import asyncio, sys, time
from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelField, ChannelKind
from cortex.ports.channels import Target

class Bell:
    def checked(self, target):
        {checked}
    async def send(self, notice, target):
        {send}

def opened(context):
    {opened}

async def lacks_for(context, user_id):
    {lacks_for}

def made():
    {made}

facts = dict(label="Bell", order=900, open=opened, tested="", lacks_for=lacks_for, fields=(
    ChannelField(name="address", label="Door"), ChannelField(name="secret", label="Code", made=made)))
facts.update({facts})
CHANNEL = ChannelKind(**facts)
"""
GOOD = {"checked": "return target", "send": "pass", "opened": "return Bell()", "lacks_for": "return ''"}
GOOD |= {"made": "return 'secret'", "facts": ""}


def bell(site: Path, **parts: str) -> None:
    files = {"cortex_sky/__init__.py": "", "cortex_sky/bell.py": BELL.format(**(GOOD | parts))}
    install(site, NAME, files, {CHANNELS: {"bell": "cortex_sky.bell"}})


@pytest.mark.parametrize(
    "facts",
    [
        *("label=7", "label='x' * 99", "label='Bell\\u202e'", "label='NTFY'", "order='1'", "at_once='many'"),
        *("fields=(ChannelField(name='door', label='Door'),)", "fields=(7,)", "fields=None", "nowhere=7"),
        *("fields=(ChannelField(name='address', label='Door'),) * 2",),
    ],
)
async def test_a_channel_whose_words_cannot_be_shown_is_refused(tmp_path: Path, site: Path, facts: str) -> None:
    await asyncio.to_thread(bell, site, facts=facts)
    async with living_house(tmp_path / "home") as house:
        found = await allow(house.cortex, house.admin, NAME)
        assert (found.state, found.channels) == ("failed", ())
        assert "bell" not in house.cortex.channels.kinds


@pytest.mark.parametrize("name", ["ntf\u0443", "web_push", "a-b"])
async def test_a_channel_passes_for_no_other(tmp_path: Path, site: Path, name: str) -> None:
    files = {"cortex_sky/__init__.py": "", "cortex_sky/bell.py": BELL.format(**GOOD)}
    await asyncio.to_thread(install, site, NAME, files, {CHANNELS: {name: "cortex_sky.bell"}})
    async with living_house(tmp_path / "home") as house:
        before = dict(house.cortex.channels.kinds)
        assert (await allow(house.cortex, house.admin, NAME)).state == "failed"
        assert house.cortex.channels.kinds == before


@pytest.mark.parametrize(
    "body",
    ["raise RuntimeError", "raise KeyboardInterrupt", "raise GeneratorExit", "await asyncio.sleep(60)", "return 7"],
)
async def test_no_page_waits_for_what_a_channel_says_that_it_lacks(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(plugin_channels, "ASK_S", 0.2)
    await asyncio.to_thread(bell, site, lacks_for=body)
    async with living_house(tmp_path / "home") as house, asyncio.timeout(AT_ONCE_S):
        await allow(house.cortex, house.admin, NAME)
        views = await house.cortex.notices.addresses.views(house.member)
        assert [one.lacks for one in views if one.name == "bell"] == [plugin_channels.BROKEN]


async def test_what_is_no_coroutine_is_asked_in_vain(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(bell, site, facts="lacks_for=lambda context, user_id: 1 / 0")
    async with living_house(tmp_path / "home") as house:
        await allow(house.cortex, house.admin, NAME)
        assert await house.cortex.channels.lacks_for(house.member.id, "bell") == plugin_channels.BROKEN


@pytest.mark.parametrize(
    "parts",
    [
        {"opened": "raise KeyError"},
        {"opened": "sys.exit()"},
        {"opened": "time.sleep(2); return Bell()"},
        {"made": "raise KeyboardInterrupt"},
        {"made": "return 7"},
        {"checked": "raise GeneratorExit"},
        {"checked": "return 7"},
        {"checked": "return Target(address=7)"},
        {"checked": "raise UserError('\\ud800')"},
    ],
    ids=str,
)
async def test_an_address_that_its_channel_fails_on_is_not_kept_and_the_person_hears_it(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch, parts: dict[str, str]
) -> None:
    monkeypatch.setattr(plugin_channels, "OPEN_S", 0.2)
    await asyncio.to_thread(bell, site, **parts)
    async with living_house(tmp_path / "home") as house, asyncio.timeout(AT_ONCE_S):
        await allow(house.cortex, house.admin, NAME)
        addresses = house.cortex.notices.addresses
        with pytest.raises((UserError, ConfigError)) as refused:
            await addresses.put(house.member, "bell", "https://door.example")
        refused.value.message.encode()
        assert await addresses.target(house.member.id, "bell") is None


@pytest.mark.parametrize(
    "body",
    ["sys.exit()", "raise KeyboardInterrupt", "raise GeneratorExit", "raise KeyError", "await asyncio.sleep(60)"],
)
async def test_whatever_happens_as_it_sends_is_tried_later(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(plugin_channels, "SEND_S", 0.2)
    await asyncio.to_thread(bell, site, send=body)
    async with living_house(tmp_path / "home") as house, asyncio.timeout(AT_ONCE_S):
        await allow(house.cortex, house.admin, NAME)
        channel = await house.cortex.channels.channel("bell")
        with pytest.raises(DeliveryError) as failed:
            await channel.send(
                trial("1", house.cortex.channels.register.kind("bell")), ready(channel, Target(address="door"))
            )
        assert failed.value.fate == "later"


async def test_another_process_hears_that_a_channel_was_allowed_and_revoked(tmp_path: Path, site: Path) -> None:
    await asyncio.to_thread(bell, site)
    async with living_house(tmp_path / "home") as house:
        door, outbox = house.cortex.plugins, house.cortex.outbox
        (found,) = await door.list()
        assert found.package is not None
        await door.allow(house.admin, NAME, found.package.digest)
        assert "bell" not in house.cortex.channels.kinds
        await outbox.refresh()
        assert "bell" in house.cortex.channels.kinds
        await door.revoke(house.admin, NAME)
        await outbox.refresh()
        assert "bell" not in house.cortex.channels.kinds
