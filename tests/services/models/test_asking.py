"""The retry and fallback rule, first with scripted providers, then through the real wire."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from cortex.base.address import named
from cortex.base.errors import ProviderError
from cortex.base.messages import Usage, assistant, user
from cortex.base.model import ModelEntry
from cortex.base.turn import Reply
from cortex.ports.loop import Delta, Request, StreamEnd
from cortex.providers import ProviderContext, connect
from cortex.services.models.asking import Link, ask
from tests.scripted_server import Fault, ScriptedServer, rule

HELLO = Request(system="", messages=(user("hello"),))


@dataclass
class Scripted:
    """Yields what each try is told to: words, then an error or the end."""

    tries: list[tuple[str, ProviderError | None]]
    closed: int = 0

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        words, error = self.tries.pop(0)
        try:
            if words:
                yield Delta(kind="text", text=words)
            if error is not None:
                raise error
            yield StreamEnd(message=assistant(words), usage=Usage(input_tokens=1), finish="stop")
        finally:
            self.closed += 1

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class Page:
    """What the person would see."""

    deltas: list[tuple[str, int]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    async def delta(self, kind: str, text: str, attempt: int) -> None:
        self.deltas.append((text, attempt))

    async def notice(self, text: str) -> None:
        self.notices.append(text)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def ask(self, *links: Link, request: Request = HELLO) -> Reply:
        return await ask(
            links, request, on_delta=self.delta, on_notice=self.notice, sleep=self.sleep, jitter=lambda: 0.0
        )


def link(name: str, *tries: tuple[str, ProviderError | None]) -> Link:
    return Link(entry=ModelEntry(name=name, provider="x"), provider=Scripted(list(tries)))


def error(kind: str, *, again: bool = True, after_s: float | None = None) -> ProviderError:
    return ProviderError(f"m: {kind}.", kind=kind, is_retryable=again, retry_after_s=after_s)


async def test_a_cut_answer_is_started_again_under_a_higher_attempt() -> None:
    page = Page()
    reply = await page.ask(link("a", ("Hal", error("cut")), ("Hello", None)))
    assert reply.message == assistant("Hello")
    assert page.deltas == [("Hal", 1), ("Hello", 2)]
    assert page.notices == ["m: cut. Trying again."]


async def test_retry_after_is_honoured() -> None:
    page = Page()
    reply = await page.ask(link("a", ("", error("rate_limit", after_s=7)), ("Hello", None)))
    assert reply.model == "a"
    assert page.waits == [7]
    assert ["rate_limit" in notice and "7 s" in notice for notice in page.notices] == [True]


async def test_a_wait_that_is_too_long_goes_to_the_next_model() -> None:
    page = Page()
    reply = await page.ask(link("a", ("", error("rate_limit", after_s=600))), link("b", ("Hello", None)))
    assert (reply.model, page.waits) == ("b", [])
    assert ["rate_limit" in notice and "with b" in notice for notice in page.notices] == [True]


async def test_two_tries_a_model_then_the_next() -> None:
    page = Page()
    reply = await page.ask(link("a", ("", error("server")), ("x", error("server"))), link("b", ("Hello", None)))
    assert reply.model == "b"
    assert page.deltas == [("x", 2), ("Hello", 3)]


LOADS = (
    "The server said: Loading model",
    "It said: Model meta-llama/Llama-3 is currently loading",
    "It said: the model is still being loaded, try later",
)


@pytest.mark.parametrize("said", LOADS)
async def test_a_server_that_loads_its_model_is_waited_for_and_that_is_said_once(said: str) -> None:
    page = Page()
    loads = ("", ProviderError(f"a: (503). {said}", kind="server", is_retryable=True))
    reply = await page.ask(link("a", *[loads] * 8, ("Hello", None)))
    assert (reply.model, reply.failure) == ("a", "")
    assert (len(page.waits), sum(page.waits)) == (8, 47.0)
    assert ["loads the model" in notice for notice in page.notices] == [True]


async def test_a_server_that_loads_for_ever_is_not_waited_for_longer_than_two_minutes_nor_ahead_of_another() -> None:
    loads = ("", ProviderError("a: (503). Loading model", kind="server", is_retryable=True))
    page = Page()
    reply = await page.ask(link("a", *[loads] * 30))
    assert "Loading model" in reply.failure
    assert 100 < sum(page.waits) < 130
    page = Page()
    reply = await page.ask(link("a", *[loads] * 30), link("b", ("Hello", None)))
    assert reply.model == "b"
    assert 10 < sum(page.waits) < 20


@pytest.mark.parametrize("said", ["error loading model: no such file", "failed to load model", "Model not loaded"])
async def test_a_model_that_cannot_be_loaded_is_not_waited_for(said: str) -> None:
    page = Page()
    broken = ("", ProviderError(f"a: (500). {said}", kind="server", is_retryable=True))
    reply = await page.ask(link("a", *[broken] * 3))
    assert reply.failure
    assert len(page.waits) == 1


async def test_a_refused_key_is_not_tried_twice() -> None:
    page = Page()
    reply = await page.ask(link("a", ("", error("auth", again=False))), link("b", ("", error("auth", again=False))))
    assert reply.message is None
    assert reply.failure_kind == "auth"
    assert "m: auth." in reply.failure
    assert "its key" in reply.failure, "the same would be refused again"
    away = await page.ask(link("a", ("", error("server")), ("", error("server"))))
    assert "try again" in away.failure


async def test_a_stream_without_an_end_counts_as_cut() -> None:
    class Endless(Scripted):
        async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
            yield Delta(kind="text", text="Hal")

    reply = await Page().ask(Link(entry=ModelEntry(name="a", provider="x"), provider=Endless([])))
    assert (reply.message, reply.failure_kind) == (None, "cut")


async def test_no_model_at_all_is_said() -> None:
    assert "Models page" in (await Page().ask()).failure


async def test_the_stream_is_closed_when_the_page_fails() -> None:
    provider = Scripted([("Hello", None)])

    async def broken(kind: str, text: str, attempt: int) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        await ask(
            [Link(entry=ModelEntry(name="a", provider="x"), provider=provider)],
            HELLO,
            on_delta=broken,
            on_notice=Page().notice,
        )
    assert provider.closed == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_through_the_real_wire_the_second_model_answers(scripted: ScriptedServer, kind: str) -> None:
    """A 429, a stream cut in the middle, then the next model: one whole answer, nothing of the halves."""
    scripted.rules = [rule("hello", "Hello, how are you today?")]
    scripted.fail(Fault(kind="status", status=429, retry_after="1"), Fault(kind="cut", after_bytes=700))
    base_url = scripted.base_url if kind == "openai" else scripted.origin
    surroundings = ProviderContext(policy=named(("127.0.0.1", scripted.port)))
    entries = [ModelEntry(name=n, provider=kind, model=n, base_url=base_url) for n in ("first", "second")]
    links = [Link(entry=entry, provider=connect(entry, "test-key", surroundings)) for entry in entries]
    page = Page()
    reply = await page.ask(*links)
    said = "Hello, how are you today?"
    assert reply.message == assistant(said)
    assert reply.model == "second"
    assert "".join(text for text, attempt in page.deltas if attempt == 3) == said
    assert [seen.body["model"] for seen in scripted.log] == ["first", "first", "second"]
    for each in links:
        await each.provider.close()
