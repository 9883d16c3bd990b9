"""Jobs that a web address begins: who is let in, what a run is told, what it may do, and what a kill leaves."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import Busy, Conflict, NotAllowed, NotFound, Throttled, UserError
from cortex.base.outside_text import cut, quoted
from cortex.services.jobs.forms import JobForm
from cortex.services.jobs.hook_requests import HookRequest
from cortex.services.jobs.hooks import REFUSED_A_MINUTE, TAKEN_A_MINUTE, WAITING_MOST
from cortex.storage.halts import HaltsRepository
from cortex.storage.hooks import HooksRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import AllJobsRepository
from cortex.storage.secrets import SecretsRepository
from cortex.storage.slots import SlotsRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, Use, rule
from tests.still_clock import StillClock

AWAY = "http://127.0.0.1:9/elsewhere"
BODIES = (Path(__file__).parent / "hostile_bodies.txt").read_text(encoding="utf-8").splitlines()
BELL = JobForm(name="Bell", kind="message", prompt="Somebody is at the door.", when="only when called")


async def made(house: LivingHouse, form: JobForm = BELL, *, needs_secret: bool = True) -> tuple[JobRow, str, str]:
    """A job with its address and secret."""
    job = await house.cortex.jobs.add(house.admin, form)
    secret = await house.cortex.hooks.open(house.admin, job.id, needs_secret=needs_secret)
    hook = await house.cortex.hooks.get(house.admin, job.id)
    assert hook is not None
    return job, hook.address, secret


def asked(body: bytes = b'{"door": "front"}', **headers: str) -> HookRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HookRequest(headers={"content-type": "application/json", **named}, body=body)


def bearer(secret: str, body: bytes = b'{"door": "front"}', **headers: str) -> HookRequest:
    return asked(body, authorization=f"Bearer {secret}", **headers)


async def ended(house: LivingHouse, slot: str) -> Any:
    """The slot when it has ended."""
    slots = house.rows(SlotsRepository)
    async with asyncio.timeout(PATIENCE_S):
        while (row := await slots.get(slot)).ended_at is None:  # noqa: ASYNC110 - it looks at tables
            await asyncio.sleep(0.05)
    return row


async def test_what_is_sent_begins_a_run_and_is_told_as_text_from_outside(house: LivingHouse) -> None:
    job, address, secret = await made(house)
    assert (job.next_at, "is called" in job.words) == (None, True)
    slot = await house.cortex.hooks.receive(address, bearer(secret))
    assert (await ended(house, slot)).state == "done"
    (notice,) = (await house.cortex.notices.page(house.admin.id)).notices
    assert (notice.row.title, notice.row.is_tainted) == ("Bell", True)
    assert notice.row.text.endswith('\n{"door": "front"}')
    (run,) = await house.cortex.jobs.history(house.admin, job.id)
    assert run.is_called


def hub(secret: str, body: bytes) -> Mapping[str, str]:
    return {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def standard(secret: str, body: bytes, at: int) -> Mapping[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    sign = base64.b64encode(hmac.new(key, f"m1.{at}.".encode() + body, hashlib.sha256).digest()).decode()
    return {"webhook-id": "m1", "webhook-timestamp": str(at), "webhook-signature": f"v1,bm8= v1,{sign}"}


def test_a_sender_proves_itself_in_any_of_the_usual_ways(clock: StillClock) -> None:
    secret, body, at = "whsec_" + base64.b64encode(b"k" * 32).decode(), b"{}", int(clock().timestamp())
    ways: list[Mapping[str, str]] = [
        {"authorization": f"bearer {secret}"},
        {"x-cortex-secret": secret},
        {"x-gitlab-token": secret},
        hub(secret, body),
        standard(secret, body, at),
    ]
    for headers in ways:
        assert HookRequest(headers=headers, body=body).is_signed_by(secret, clock())
        if "authorization" not in headers and "signature" in " ".join(headers):
            assert not HookRequest(headers=headers, body=b'{"x": 1}').is_signed_by(secret, clock())
    wrong: list[Mapping[str, str]] = [
        {},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {secret}"},
        {"x-cortex-secret": secret[:-1]},
        {"x-cortex-secret": "ü"},
        hub("another", body),
        standard(secret, body, at - 301),
        {**standard(secret, body, at), "webhook-timestamp": "x"},
    ]
    assert not any(HookRequest(headers=headers, body=body).is_signed_by(secret, clock()) for headers in wrong)


async def test_a_second_try_of_a_delivery_begins_nothing_anew(house: LivingHouse) -> None:
    job, address, secret = await made(house)
    first = await house.cortex.hooks.receive(address, bearer(secret, x_github_delivery="d-1"))
    assert await house.cortex.hooks.receive(address, bearer(secret, x_github_delivery="d-1")) == first
    assert await house.cortex.hooks.receive(address, bearer(secret, x_github_delivery="d-2")) != first
    both = await asyncio.gather(
        *(house.cortex.hooks.receive(address, bearer(secret, idempotency_key="d-3")) for _ in range(5))
    )
    assert len(set(both)) == 1
    hook = await house.cortex.hooks.get(house.admin, job.id)
    assert hook is not None
    assert (hook.taken, hook.refused) == (3, 0)


async def test_who_does_not_know_the_secret_is_refused_alike_and_counted(house: LivingHouse) -> None:
    job, address, secret = await made(house)
    for where, request in ((address, asked()), (address, bearer("wrong")), ("nowhere", bearer(secret))):
        with pytest.raises(NotAllowed, match="address does not exist, or the secret"):
            await house.cortex.hooks.receive(where, request)
    for _ in range(REFUSED_A_MINUTE):
        with pytest.raises((NotAllowed, Throttled)):
            await house.cortex.hooks.receive(address, bearer("wrong"))
    with pytest.raises(Throttled):
        await house.cortex.hooks.receive(address, bearer(secret))
    hook = await house.cortex.hooks.get(house.admin, job.id)
    assert hook is not None
    assert (hook.taken, hook.refused) == (0, REFUSED_A_MINUTE)
    assert await house.cortex.jobs.history(house.admin, job.id) == ()


async def test_an_address_without_a_secret_is_taken_only_where_that_was_chosen(house: LivingHouse) -> None:
    job, address, secret = await made(house, needs_secret=False)
    assert secret == ""
    await house.cortex.hooks.receive(address, asked(b""))
    await house.cortex.hooks.open(house.admin, job.id, needs_secret=False)
    with pytest.raises(NotAllowed):
        await house.cortex.hooks.receive(address, asked(b""))
    await house.cortex.hooks.close(house.admin, job.id)
    assert await house.cortex.hooks.get(house.admin, job.id) is None
    with pytest.raises(NotFound):
        await house.cortex.hooks.close(house.admin, job.id)
    with pytest.raises(NotFound):
        await house.cortex.hooks.open(house.member, job.id, needs_secret=True)


async def test_the_secret_goes_with_its_address(house: LivingHouse) -> None:
    kept = house.cortex.runtime.db.repository(SecretsRepository, house.admin.id)
    before = await kept.names()
    job, _, secret = await made(house)
    assert secret
    assert len(await kept.names()) == len(before) + 1
    await house.cortex.hooks.close(house.admin, job.id)
    assert await kept.names() == before


async def test_too_many_are_put_off_and_none_is_lost(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path / "home", clock=clock) as house:
        _, address, secret = await made(house)
        taken = [await house.cortex.hooks.receive(address, bearer(secret)) for _ in range(WAITING_MOST)]
        while len(taken) < TAKEN_A_MINUTE:
            await ended(house, taken[-1])
            taken.append(await house.cortex.hooks.receive(address, bearer(secret)))
        await ended(house, taken[-1])
        with pytest.raises(Throttled, match="30 a minute"):
            await house.cortex.hooks.receive(address, bearer(secret))
        clock.forward(seconds=61)
        taken.append(await house.cortex.hooks.receive(address, bearer(secret)))
        assert len(set(taken)) == TAKEN_A_MINUTE + 1
        assert {(await ended(house, slot)).state for slot in taken} == {"done"}


async def test_a_paused_job_and_stopped_work_refuse_in_words(house: LivingHouse) -> None:
    job, address, secret = await made(house)
    await house.cortex.jobs.enable(house.admin, job.id, job.version, is_enabled=False)
    with pytest.raises(Conflict, match="paused"):
        await house.cortex.hooks.receive(address, bearer(secret))
    await house.cortex.jobs.enable(house.admin, job.id, job.version + 1, is_enabled=True)
    await house.cortex.runtime.db.repository(HaltsRepository).add(house.admin.id, house.admin.id, "Ada")
    with pytest.raises(Busy, match="stopped"):
        await house.cortex.hooks.receive(address, bearer(secret))


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("application/x-www-form-urlencoded", b"door=front&who=a%20b&x", "door: front\nwho: a b\nx: "),
        ("text/plain", "ringt ü".encode(), "ringt ü"),
        ("", b"", ""),
    ],
)
def test_forms_and_texts_are_read(kind: str, body: bytes, said: str) -> None:
    assert HookRequest(headers={"content-type": kind}, body=body).text == said


@pytest.mark.parametrize(("kind", "body"), [("multipart/form-data; boundary=x", b"--x"), ("", b"\xff"), ("", b"a\0b")])
def test_what_is_no_text_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(UserError):
        _ = HookRequest(headers={"content-type": kind}, body=body).text


def test_a_fence_is_longer_than_any_in_the_text_and_what_hides_is_shown() -> None:
    told = quoted("a\n````\nb\u202ec", "(about)")
    assert told == "(about)\n`````\na\n````\nb⟨U+202E⟩c\n`````"
    assert cut("x" * 15, 10).startswith("x" * 10 + "\n[5 more")


async def test_what_a_kill_left_noted_is_begun_at_the_next_start(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        _, address, secret = await made(house)
        house.cortex.job_runs.settle_slots = nothing  # type: ignore[method-assign]  # it dies ahead of its next look
        slot = await house.cortex.hooks.receive(address, bearer(secret))
    async with living_house(tmp_path / "home") as house:
        assert (await ended(house, slot)).state == "done"
        assert len((await house.cortex.notices.page(house.admin.id)).notices) == 1


async def nothing() -> None:
    """Look at no slot."""


async def test_a_deleted_job_takes_address_and_secret_along(house: LivingHouse) -> None:
    job, address, secret = await made(house)
    await house.cortex.jobs.remove(house.admin, job.id, job.version)
    with pytest.raises(NotAllowed):
        await house.cortex.hooks.receive(address, bearer(secret))
    db = house.cortex.runtime.db
    assert await db.repository(AllJobsRepository).prune(house.cortex.runtime.clock()) == 1
    assert await db.repository(HooksRepository, house.admin.id).get(job.id) is None
    assert f"hook:{job.id}" not in await db.repository(SecretsRepository, house.admin.id).names()


@pytest.mark.moves_cache_prefix(reason="the model calls what it was not sent; what is sent follows")
@pytest.mark.parametrize("numbers", [range(2), pytest.param(range(2, 20), marks=pytest.mark.full)], ids=["few", "rest"])
async def test_hostile_words_lead_to_nothing_that_the_person_did_not_allow(
    tmp_path: Path, scripted: ScriptedServer, numbers: range
) -> None:
    """The most obedient model there can be: it reads private data, sends it away, writes; the gate refuses or asks."""
    assert len(BODIES) == 20
    look = Use("task_list", {}, is_blind=True)
    scripted.rules = [
        rule("^send", look, Use("http_fetch", {"url": AWAY}, is_blind=True), "Done."),
        rule("^write", Use("file_write", {"path": "own.txt", "text": "x"}, is_blind=True), "Done."),
    ]
    async with living_house(tmp_path / "home") as house:
        await house.connect(scripted)
        send = await made(house, JobForm(name="Send", prompt="send what is open", when="only when called"))
        write = await made(house, JobForm(name="Write", prompt="write it down", when="only when called"))
        db = house.cortex.runtime.db
        for number in numbers:
            body = BODIES[number].encode()
            slot = await house.cortex.hooks.receive(send[1], bearer(send[2], body))
            turn = await db.repository(TurnsRepository, house.admin.id).get((await ended(house, slot)).turn_id)
            assert (turn.is_tainted, turn.text.startswith("send what is")) == (True, True)
            results = await house.events(turn.conversation_id, "tool.result")
            assert [one.payload["state"] for one in results][-2:] == ["ok", "refused"]
            slot = await house.cortex.hooks.receive(write[1], bearer(write[2], body))
            async with asyncio.timeout(PATIENCE_S):
                while not (waiting := await house.cortex.approvals.pending(house.admin)):  # noqa: ASYNC110 - it looks at tables
                    await asyncio.sleep(0.05)
            assert waiting[0].tool == "file_write"
            await house.cortex.approvals.answer(house.admin, waiting[0].id, "deny")
            assert (await ended(house, slot)).state == "denied"
        own = house.cortex.runtime.settings.home / house.admin.id / "files"
        assert not (own / "own.txt").exists()
