"""The model registry through its one door, with the real database, home, vault and wire."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.address import AddressPolicy
from cortex.base.crypto import Vault
from cortex.base.errors import NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.messages import Usage
from cortex.base.messages import user as said
from cortex.base.model import OFFLINE, ModelEntry
from cortex.base.role import Role
from cortex.base.user import User
from cortex.ports.loop import Provider, Request
from cortex.providers import ProviderContext, connect
from cortex.services.models.asking import ask
from cortex.services.models.models import Models
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.home import Homes
from cortex.storage.secrets import SecretsRepository
from tests.scripted_server import Fault, Say, ScriptedServer, Use, rule

CHAT = Role(name="chat", prompt="")


def dial(entry: ModelEntry, secret: str | None, policy: AddressPolicy) -> Provider:
    return connect(entry, secret, ProviderContext(policy=policy, chunk_delay_s=0))


class Place:
    """The parts under test, on a folder of their own."""

    def __init__(self, folder: Path, db: Database) -> None:
        self.folder = folder
        self.db = db
        self.models = Models(self.db, Homes(folder), Vault("k" * 32), dial)

    def file(self, user: User) -> Path:
        return self.folder / user.id / "model_registry.json"


@pytest.fixture
async def place(tmp_path: Path, db: Database) -> AsyncIterator[Place]:
    made = Place(tmp_path, db)
    yield made
    await made.models.close()


@pytest.fixture
async def admin(place: Place) -> User:
    return await account(place, "ada", "admin")


async def account(place: Place, name: str, rank: Any) -> User:
    row = await place.db.repository(AccountsRepository).add(new_id(), name, rank, "x", "UTC")
    return User(id=row.id, name=name, rank=rank)


def form(server: ScriptedServer, **more: Any) -> dict[str, Any]:
    return {
        "name": "scripted",
        "provider": "openai",
        "model": "scripted-1",
        "base_url": server.base_url,
        "api_key": server.api_key,
        **more,
    }


async def talk(place: Place, user: User, *names: str) -> Any:
    async def quiet(*_: object) -> None:
        """Nobody watches."""

    chain = await place.models.open_chain(user, names)
    request = Request(system="", messages=(said("hello"),))
    return await ask(chain, request, on_delta=quiet, on_notice=quiet, sleep=quiet)


async def test_without_models_the_offline_one_answers(place: Place, admin: User) -> None:
    assert (await place.models.registry(admin)).chain(CHAT) == ("offline",)
    assert (await place.models.registry(admin)).first(CHAT) == OFFLINE
    assert "no AI" in (await talk(place, admin, "offline")).message.text


async def test_a_saved_model_answers_and_its_key_lies_nowhere_open(
    place: Place, admin: User, scripted: ScriptedServer
) -> None:
    await place.models.save(admin, form(scripted))
    reply = await talk(place, admin, "scripted")
    assert (reply.message.text, reply.model) == ("You said: hello", "scripted")
    assert scripted.api_key not in place.file(admin).read_text()
    names = await place.db.repository(SecretsRepository, admin.id).names()
    sealed = await place.db.repository(SecretsRepository, admin.id).get(names[0])
    assert sealed is not None
    assert scripted.api_key.encode() not in sealed
    registry = await place.models.registry(admin)
    assert registry.with_key == {"scripted"}
    assert scripted.api_key not in repr(registry)


async def test_a_real_model_that_fails_is_never_replaced_by_the_offline_one(
    place: Place, admin: User, scripted: ScriptedServer
) -> None:
    await place.models.save(admin, form(scripted, api_key="wrong-key"))
    reply = await talk(place, admin, "scripted", "gone")
    assert reply.message is None
    assert reply.failure_kind == "auth"


async def test_a_stored_key_is_not_sent_to_another_place(place: Place, admin: User, scripted: ScriptedServer) -> None:
    await place.models.save(admin, form(scripted))
    moved = form(scripted, base_url="http://127.0.0.1:9/v1", api_key="")
    with pytest.raises(UserError, match="Enter the key again"):
        await place.models.save(admin, moved, "scripted")
    with pytest.raises(UserError, match="Enter the key again"):
        await place.models.test(admin, moved, "scripted")
    await place.models.save(admin, {**moved, "forget_key": True}, "scripted")
    assert (await place.models.registry(admin)).with_key == frozenset()
    assert await place.db.repository(SecretsRepository, admin.id).names() == []


@pytest.mark.parametrize("change", ["saved", "moved", "tested", "removed"])
async def test_what_an_admin_changes_cuts_no_answer_off(
    place: Place, admin: User, scripted: ScriptedServer, change: str
) -> None:
    await place.models.save(admin, form(scripted))
    scripted.fail(Fault(kind="pause", after_bytes=100))
    asked = asyncio.create_task(talk(place, admin, "scripted"))
    await asyncio.to_thread(scripted.wait_for, 1)
    match change:
        case "saved":
            await place.models.save(admin, form(scripted, context_tokens="20000"), "scripted")
        case "moved":
            await place.models.save(admin, form(scripted, model="scripted-2"), "scripted")
        case "tested":
            await place.models.test_saved(admin, "scripted")
        case _:
            await place.models.remove(admin, "scripted")
    scripted.go_on(100)
    assert (await asked).message.text == "You said: hello"


async def test_a_change_keeps_the_key_and_the_chains(place: Place, admin: User, scripted: ScriptedServer) -> None:
    await place.models.save(admin, form(scripted))
    await place.models.save(admin, form(scripted, name="second"))
    await place.models.set_chain(admin, ["second", "scripted"])
    await place.models.set_chain(admin, ["scripted"], role="coder")
    await place.models.save(admin, form(scripted, name="first", api_key="", max_rounds="3"), "scripted")
    assert (await place.models.registry(admin)).chain(CHAT) == ("second", "first")
    assert (await place.models.registry(admin)).chain(CHAT, "first") == ("first", "second")
    assert (await place.models.registry(admin)).chain(Role(name="coder", prompt="")) == ("first",)
    assert (await place.models.registry(admin)).chain(Role(name="chat", prompt="", models=("gone", "first"))) == (
        "first",
    )
    assert (await place.models.entry(admin, "first")).max_rounds == 3
    assert (await talk(place, admin, "first")).model == "first"
    await place.models.remove(admin, "first")
    assert (await place.models.registry(admin)).chain(Role(name="coder", prompt="")) == ("second",)
    with pytest.raises(NotFound):
        await place.models.entry(admin, "first")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": ""}, "name"),
        ({"name": "Offline"}, "reserved for the offline"),
        ({"provider": "egress"}, "provider"),
        ({"base_url": "file:///etc/passwd"}, "write an address like"),
        ({"base_url": "http://me:secret@host/v1"}, "without a name and password"),
        ({"context_tokens": "12"}, "context_tokens"),
        ({"max_rounds": "99"}, "max_rounds"),
        ({"surprise": "1"}, "surprise"),
    ],
    ids=lambda value: str(next(iter(value))) if isinstance(value, dict) else "",
)
async def test_a_slip_in_the_form_is_named_and_nothing_is_written(
    place: Place, admin: User, scripted: ScriptedServer, change: dict[str, str], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        await place.models.save(admin, form(scripted, **change))
    assert not place.file(admin).exists()
    assert await place.db.repository(SecretsRepository, admin.id).names() == []


async def test_a_damaged_file_is_told_and_left_alone(place: Place, admin: User, scripted: ScriptedServer) -> None:
    place.file(admin).parent.mkdir(parents=True)
    place.file(admin).write_text('{"models": [{"name": "a", "provdier": "openai"}]}')
    before = place.file(admin).read_text()
    with pytest.raises(UserError, match=r"models\.0\.provdier"):
        await place.models.registry(admin)
    with pytest.raises(UserError):
        await place.models.save(admin, form(scripted))
    assert place.file(admin).read_text() == before
    assert await place.db.repository(SecretsRepository, admin.id).names() == []


async def test_a_member_reaches_no_server_inside_unless_it_is_allowed(place: Place, scripted: ScriptedServer) -> None:
    member = await account(place, "max", "member")
    await place.models.save(member, form(scripted))
    reply = await talk(place, member, "scripted")
    assert reply.failure_kind == "connection"
    assert scripted.log == []
    allowed = Models(place.db, Homes(place.folder), Vault("k" * 32), dial, hosts=[("127.0.0.1", scripted.port)])
    place.models, before = allowed, place.models
    await before.close()
    assert (await talk(place, member, "scripted")).model == "scripted"


async def test_one_user_never_sees_anothers_models(place: Place, admin: User, scripted: ScriptedServer) -> None:
    await place.models.save(admin, form(scripted))
    other = await account(place, "eve", "member")
    assert (await place.models.registry(other)).entries == ()
    with pytest.raises(NotFound):
        await place.models.entry(other, "scripted")


async def test_a_key_sealed_under_another_secret_is_said_and_the_next_model_answers(
    place: Place, admin: User, scripted: ScriptedServer
) -> None:
    await place.models.save(admin, form(scripted))
    other = Models(place.db, Homes(place.folder), Vault("z" * 32), dial)
    await other.save(admin, form(scripted, name="second"))
    place.models, before = other, place.models
    await before.close()
    assert (await talk(place, admin, "scripted", "second")).model == "second"
    assert "secret key" in (await talk(place, admin, "scripted")).failure


BOTH = Say(calls=(Use("probe_sum", {"a": 2, "b": 3}), Use("probe_sum", {"a": 4, "b": 5})))
ONE = Say(calls=(Use("probe_sum", {"a": 2, "b": 3}),))


@pytest.mark.parametrize(
    ("steps", "tools", "parallel"),
    [((BOTH,), True, True), ((ONE,), True, False), (("I'd rather not.",), False, False)],
    ids=["both", "one at a time", "no tools"],
)
async def test_the_probe_tells_what_the_model_can(
    place: Place, admin: User, scripted: ScriptedServer, steps: Any, tools: bool, parallel: bool
) -> None:
    scripted.rules = [rule("probe_sum", *steps)]
    report = await place.models.test(admin, form(scripted))
    assert (report.is_ok, report.streams, report.tools, report.parallel) == (True, True, tools, parallel)
    assert report.message.startswith("scripted works")
    assert not place.file(admin).exists()


async def test_the_probe_of_a_wrong_key_says_so(place: Place, admin: User, scripted: ScriptedServer) -> None:
    report = await place.models.test(admin, form(scripted, api_key="nope"))
    assert (report.is_ok, report.tools) == (False, None)
    assert "was refused" in report.message


async def connected(place: Place, admin: User, scripted: ScriptedServer) -> None:
    """The scripted model as a provider's list would bring it: nothing of it set by hand."""
    await place.models.save(admin, form(scripted))
    file, version = await place.models.store.read(admin.id)
    models = tuple(model.model_copy(update={"by_hand": ()}) for model in file.models)
    await place.models.store.write(admin.id, file, file.model_copy(update={"models": models}), version)


async def test_what_the_probe_found_is_kept_and_what_follows_is_said(
    place: Place, admin: User, scripted: ScriptedServer
) -> None:
    await connected(place, admin, scripted)
    scripted.fail(Fault(kind="status", status=400))
    report = await place.models.test_saved(admin, "scripted")
    assert (report.is_ok, report.streams, report.tools) == (True, False, False)
    assert ("are not sent" in report.lines[-1], report.model) == (True, "scripted")
    entry = await place.models.entry(admin, "scripted")
    assert (entry.streams, entry.tools) == (False, False)
    assert (await talk(place, admin, "scripted")).message.text == "You said: hello"
    again = await place.models.test_saved(admin, "scripted")
    assert (len(again.lines), again.model) == (3, ""), "no news, no consequence"
    scripted.rules = [rule("probe_sum", BOTH)]
    assert "tools are sent" in (await place.models.test_saved(admin, "scripted")).lines[-1]


async def test_a_test_overrules_nothing_that_was_set_by_hand(
    place: Place, admin: User, scripted: ScriptedServer
) -> None:
    await place.models.save(admin, form(scripted))
    report = await place.models.test_saved(admin, "scripted")
    assert (report.tools, report.model) == (False, "")
    assert "all the same" in report.lines[-1]
    assert (await place.models.entry(admin, "scripted")).tools
    await place.models.save(admin, form(scripted, tools=False), "scripted")
    scripted.rules = [rule("probe_sum", BOTH)]
    assert "are not sent" in (await place.models.test_saved(admin, "scripted")).lines[-1]
    assert not (await place.models.entry(admin, "scripted")).tools


async def test_a_model_keeps_its_tools_once_its_person_asked_for_it(
    place: Place, admin: User, scripted: ScriptedServer
) -> None:
    await connected(place, admin, scripted)
    await place.models.save(admin, form(scripted, context_tokens=64_000), "scripted")
    await place.models.test_saved(admin, "scripted")
    assert not (await place.models.entry(admin, "scripted")).tools, "a form that left the switch alone set nothing"
    await place.models.send_tools(admin, "scripted")
    await place.models.test_saved(admin, "scripted")
    assert (await place.models.entry(admin, "scripted")).tools


async def test_prices_are_typed_or_known_or_unknown(place: Place, admin: User, scripted: ScriptedServer) -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=500_000)
    typed = {"input_usd": 2.0, "output_usd": 10.0, "cached_usd": 0.2}
    await place.models.save(admin, form(scripted, price=typed))
    await place.models.save(
        admin, form(scripted, name="claude", provider="anthropic", model="claude-sonnet-4-5", base_url="")
    )
    await place.models.save(admin, form(scripted, name="mystery"))
    assert await place.models.cost(admin, "scripted", usage) == pytest.approx(1.0 + 0.1 + 1.0)
    known = await place.models.price(admin, "claude")
    assert (known.input_usd, known.output_usd, known.cached_usd, known.written_usd) == (3.0, 15.0, 0.3, 3.75)
    assert await place.models.cost(admin, "mystery", usage) is None
    assert await place.models.cost(admin, "offline", usage) == 0.0


async def test_a_file_written_by_hand_is_taken_with_the_cache_of_its_place(place: Place, admin: User) -> None:
    local = {"name": "local", "provider": "openai", "model": "llama3.2", "base_url": "http://127.0.0.1:11434/v1"}
    place.file(admin).parent.mkdir(parents=True)
    place.file(admin).write_text(json.dumps({"models": [{**local, "cache": {"life_s": 60}, "extra": {"seed": 7}}]}))
    entry = await place.models.entry(admin, "local")
    assert (entry.profile.caches, entry.profile.strength, entry.profile.life_s) == (True, "weak", 60)
    assert entry.extra_params == (("seed", "7"),)
    assert entry.context_tokens == 8_192


@pytest.mark.parametrize(
    ("given", "tokens"),
    [
        ({}, 8_192),
        ({"context_tokens": 40_960}, 40_960),
        ({"told_tokens": 4_096}, 4_096),
        ({"told_tokens": 4_096, "context_tokens": 40_960}, 40_960),
        ({"profile": "openai"}, 128_000),
        ({"profile": "none"}, 8_192),
        ({"base_url": "https://api.example.com/v1"}, 128_000),
        ({"base_url": "https://api.example.com/v1", "profile": "local"}, 8_192),
    ],
    ids=lambda one: " ".join(map(str, one)) if isinstance(one, dict) else str(one),
)
async def test_a_window_that_nobody_gave_is_small_for_a_local_model(
    place: Place, admin: User, given: dict[str, Any], tokens: int
) -> None:
    local = {"name": "local", "provider": "openai", "model": "llama3.2", "base_url": "http://127.0.0.1:11434/v1"}
    place.file(admin).parent.mkdir(parents=True)
    place.file(admin).write_text(json.dumps({"models": [{**local, **given}]}))
    assert (await place.models.entry(admin, "local")).context_tokens == tokens


async def test_a_chosen_profile_stays_until_another_is_chosen_and_no_usage_overrules_it(
    place: Place, admin: User, scripted: ScriptedServer
) -> None:
    await place.models.save(admin, form(scripted, profile="openai"))
    await place.models.save(admin, form(scripted, max_rounds="3"), "scripted")
    entry = await place.models.entry(admin, "scripted")
    assert (entry.profile.read_factor, entry.profile.strength) == (0.1, "strong")
    assert {"caches", "minimum_tokens", "life_s"} <= {*entry.typed}
    await place.models.save(admin, form(scripted, profile="found"), "scripted")
    entry = await place.models.entry(admin, "scripted")
    assert (entry.profile.read_factor, entry.profile.strength, entry.typed) == (0.0, "weak", ())
    with pytest.raises(UserError, match="profile"):
        await place.models.save(admin, form(scripted, profile="gemini"), "scripted")
