"""Scenes of refusals and of what breaks: each error in the server's own words, before and in the stream.

`…_goes_on`: what was refused is asked once more in a shape that the server takes, through the service that retries.
"""

from typing import Any

from cortex.base.errors import ProviderError
from cortex.base.messages import Message, assistant, user
from tests.model_servers.scenes_talk import MILK, PHOTO, PIXEL
from tests.model_servers.spoken import Hang, Page, Refuse, Said
from tests.model_servers.stage import Stage
from tests.model_servers.words import Refusal, body_of

HELLO = user("hello")
SEEN = user("what is this?", pictures=(PHOTO,))
# What no sentence of an error holds: bodies as they came, and libraries' own words.
_RAW = ("<html", "Traceback", "{'", '{"', "status_code", "httpx", "BadRequestError(")


def words(error: ProviderError) -> str:
    """The error's sentence, which is fit to be read."""
    assert not any(each in error.message for each in _RAW), error.message
    assert "Something went wrong in Cortex" not in error.message
    return error.message


def what(error: ProviderError) -> str:
    """What was not taken, as the product read it."""
    words(error)
    return error.rejection.what if error.rejection else f"nothing ({error.kind}: {error.message})"


def is_what(error: ProviderError, *kinds: str) -> None:
    """One of these was not taken."""
    assert what(error) in kinds, f"{what(error)}: {error.rejection}"


def history() -> list[Message]:
    """Twelve turns of some length."""
    told = "The garden needs water, the roses need a cut, and the door of the shed does not close. " * 3
    return [each for number in range(12) for each in (user(f"{number}: {told}"), assistant(f"Noted, {number}."))]


async def too_long(stage: Stage) -> None:
    """A request longer than the window, whole and streamed: read as that, with the size where it is told."""
    for streams in (True, False):
        stage.begin(window=600)
        error = await stage.fail(stage.dial(streams=streams), *history(), HELLO)
        is_what(error, "window")
        assert error.rejection is not None
        assert error.rejection.window_tokens == (None if stage.row.id == "groq" else 600), error.rejection


async def too_long_in_stream(stage: Stage) -> None:
    """The window is full in the middle of an answer, said by an event."""
    stage.begin(Said(text="It begins well and", breaks="window"))
    error = await stage.fail(stage.dial(), HELLO)
    is_what(error, "window")


async def too_long_goes_on(stage: Stage) -> None:
    """The same is asked again with a shorter history, and answered in the same turn."""
    stage.begin("Hello again.", window=600)
    await _goes_on(stage, *history(), HELLO)


async def says_no_tools(stage: Stage) -> None:
    """A model that takes no tools."""
    stage.begin(tools=False)
    error = await stage.fail(stage.dial(), HELLO)
    is_what(error, "tools", "route", "parameter")
    # LiteLLM names them as a parameter that is not taken.
    assert what(error) != "parameter" or (error.rejection is not None and error.rejection.name == "tools")


async def no_tools_goes_on(stage: Stage) -> None:
    """It is asked again without tools."""
    stage.begin("Hello.", tools=False)
    await _goes_on(stage, HELLO)


async def says_no_pictures(stage: Stage) -> None:
    """A model that takes no pictures, whose person said that it does."""
    stage.begin(pictures=False)
    error = await stage.fail(stage.dial(sees=True), SEEN, pictures={"abc": PIXEL})
    is_what(error, "pictures", "route")


async def no_pictures_goes_on(stage: Stage) -> None:
    """It is asked again with a line in the picture's place."""
    stage.begin("I see none.", pictures=False)
    await _goes_on(stage, SEEN, pictures={"abc": PIXEL})


async def output_limit(stage: Stage) -> None:
    """More output tokens than the model gives: refused with the number."""
    stage.begin(output=2_048)
    error = await stage.fail(stage.dial(max_output_tokens=9_000), HELLO)
    is_what(error, "output", "window")  # vLLM tells both as one
    found = error.rejection
    assert found is not None
    assert 2_048 in (found.output_tokens, found.window_tokens), found


async def output_limit_goes_on(stage: Stage) -> None:
    """It is asked again for fewer."""
    stage.begin("Hello.", output=2_048)
    await _goes_on(stage, HELLO, entry={"max_output_tokens": 9_000})


async def parameter_refused(stage: Stage) -> None:
    """A model that takes no temperature of the person's."""
    stage.begin(refuses=frozenset({"temperature"}))
    error = await stage.fail(stage.dial(extra_params=(("temperature", "0.2"), *_thinks(stage))), HELLO)
    is_what(error, "parameter")
    assert error.rejection is not None
    assert error.rejection.name == "temperature"


async def parameter_goes_on(stage: Stage) -> None:
    """It is asked again without it."""
    stage.begin("Hello.", refuses=frozenset({"temperature"}))
    await _goes_on(stage, HELLO, entry={"extra_params": (("temperature", "0.2"), *_thinks(stage))})


def _thinks(stage: Stage) -> tuple[tuple[str, str], ...]:
    return stage.row.thinker_settings


async def schema_refused(stage: Stage) -> None:
    """A tool whose schema the server refuses is named."""
    stage.begin(bad_tool="file_search")
    error = await stage.fail(stage.dial(), HELLO)
    is_what(error, "schema")
    # By its name or by its place in the request.
    assert error.rejection is not None
    assert error.rejection.name in ("file_search", "tools[1]"), error.rejection


async def schema_goes_on(stage: Stage) -> None:
    """It is asked again without that tool, with the other."""
    stage.begin(Said(text="On it.", calls=(MILK,)), bad_tool="file_search")
    await _goes_on(stage, HELLO, text="On it.")


async def unknown_model(stage: Stage) -> None:
    """No such model."""
    stage.begin(model="another-model")
    error = await stage.fail(stage.dial(), HELLO)
    is_what(error, "model")
    assert not error.is_retryable
    assert stage.row.model in error.message


async def no_credit(stage: Stage) -> None:
    """The account is empty: said so, not tried again."""
    stage.begin(Refuse(kind="credit"))
    error = await stage.fail(stage.dial(), HELLO)
    is_what(error, "credit")
    assert not error.is_retryable


async def key_refused(stage: Stage) -> None:
    """The key is refused: said so, not tried again, and the key is not in the sentence."""
    stage.begin()
    error = await stage.fail(stage.dial(secret="wrong-key-123456"), HELLO)
    assert error.kind == "auth", f"{error.kind}: {error.message}"
    assert not error.is_retryable
    assert "wrong-key" not in words(error)


async def overloaded(stage: Stage) -> None:
    """Too busy: tried again after the time that it asks for."""
    stage.begin(Refuse(kind="busy", retry_after="2"))
    error = await stage.fail(stage.dial(), HELLO)
    words(error)
    assert (error.is_retryable, error.retry_after_s) == (True, 2.0), f"{error.kind}: {error.message}"
    stage.begin(Refuse(kind="busy"), "Hello.")
    await _goes_on(stage, HELLO)


async def server_fails(stage: Stage) -> None:
    """The server has a fault of its own: tried again."""
    stage.begin(Refuse(kind="server"), "Hello.")
    await _goes_on(stage, HELLO)


async def filtered(stage: Stage) -> None:
    """The provider's filter refuses the request."""
    stage.begin(Refuse(kind="filtered"))
    error = await stage.fail(stage.dial(), HELLO)
    assert error.kind == "refused" or what(error) == "filtered", f"{error.kind}: {error.message}"
    assert not error.is_retryable


async def filtered_in_the_middle(stage: Stage) -> None:
    """The provider's filter ends the answer in its middle: nothing half is kept, and it is said."""
    stage.begin(Said(text="It begins well and then goes on for a while", breaks="filter"))
    error = await stage.fail(stage.dial(), HELLO)
    assert error.kind == "refused", f"{error.kind}: {error.message}"


async def ok_with_an_error(stage: Stage) -> None:
    """200 with an error in its body, streamed and whole: the server's own words."""
    _, body = body_of(stage.row.id, stage.double.words, Refusal(kind="server", facts={"model": "m"}))
    body = body[0] if isinstance(body, list) else body
    for streams in (True, False):
        stage.begin(Page(status=200, body=body))
        error = await stage.fail(stage.dial(streams=streams), HELLO)
        assert _own_words(stage) in words(error), error.message
    stage.begin(Refuse(kind="server", in_stream=True))
    assert _own_words(stage) in words(await stage.fail(stage.dial(), HELLO))


def _own_words(stage: Stage) -> str:
    told = stage.double.words["server"][1].split("{")[0].split("(")[0]
    return told.strip().removeprefix("litellm.InternalServerError: ").split(".")[0].strip()


async def proxy_page(stage: Stage) -> None:
    """Pages of a proxy in front: said in a sentence, tried again, no markup in it."""
    page = (
        "<!DOCTYPE html><html><head><title>example.com | 502: Bad gateway</title></head><body>Cloudflare</body></html>"
    )
    for status in (502, 504, 520, 524):
        stage.begin(Page(status=status, body=page))
        error = await stage.fail(stage.dial(), HELLO)
        assert error.is_retryable, f"{error.kind}: {error.message}"
        assert str(status) in words(error)
    stage.begin(Page(status=200, body=page))
    words(await stage.fail(stage.dial(), HELLO))
    stage.begin(Page(status=403, body=page.replace("502: Bad gateway", "Attention Required!")))
    words(await stage.fail(stage.dial(), HELLO))


async def error_event(stage: Stage) -> None:
    """An error in the middle of the stream: the server's own words, tried again, nothing half kept."""
    stage.begin(Said(text="It begins well and then goes on", breaks="error"), "Whole.")
    provider = stage.dial()
    error = await stage.fail(provider, HELLO)
    assert _own_words(stage) in words(error), error.message
    assert error.is_retryable, f"{error.kind}: {error.message}"
    stage.begin(Said(text="It begins well and then goes on", breaks="error"), "Whole.")
    await _goes_on(stage, HELLO, text="Whole.")


async def connection_drops(stage: Stage) -> None:
    """The connection drops ahead of the answer, behind its head, in its body: tried again, nothing half kept."""
    half = Said(text="It begins well and then", calls=(MILK,), breaks="drop")
    for answer in (Hang(phase="before"), Hang(phase="head"), half):
        stage.begin(answer)
        error = await stage.fail(stage.dial(), HELLO)
        assert error.kind in ("connection", "cut"), f"{error.kind}: {error.message}"
        assert error.is_retryable
        stage.begin(answer, "Whole.")
        await _goes_on(stage, HELLO, text="Whole.")


async def call_it_could_not_read(stage: Stage) -> None:
    """Groq could not read the model's call: the model is asked again."""
    stage.begin(Refuse(kind="tool_use_failed"), "Hello.")
    await _goes_on(stage, HELLO)


async def _goes_on(
    stage: Stage, *messages: Message, entry: dict[str, Any] | None = None, text: str = "", **more: Any
) -> None:
    provider = stage.dial(**(entry or {}))
    reply = await stage.ask(provider, stage.entry(**(entry or {})), *messages, **more)
    assert not reply.failure, reply.failure
    assert reply.message is not None
    assert not text or reply.message.text == text
    assert stage.notices, "nothing was told of the second try"
    assert not stage.double.broken, stage.double.broken
