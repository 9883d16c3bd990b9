"""Pictures as models and pages get them: upright, without what a camera noted; hostile ones end in a sentence."""

import asyncio
import io
import json
from collections.abc import Callable

import pytest
from PIL import Image

from cortex.base.errors import UserError
from cortex.integrations.ladder import Probe
from cortex.integrations.pictures import AT_ONCE, TOO_MUCH, PictureMaker
from cortex.integrations.process import ProcessResult
from cortex.integrations.sandbox import Sandbox
from cortex.ports.documents import ReadyPicture
from tests.made_pictures import HEIC, MAKER, NO_SUCH_PLACE, READ, REFUSED, turned

DAMAGED = "The picture is damaged: it cannot be read."
TOO_LARGE = "The picture has more than 60 million pixels."


async def ready(data: bytes) -> ReadyPicture:
    return await PictureMaker(sandbox=Sandbox()).ready(io.BytesIO(data))


async def said(name: str) -> str:
    with pytest.raises(UserError) as refused:
        await ready(REFUSED[name][1]())
    return refused.value.message


async def test_hostile_pictures_end_in_a_sentence() -> None:
    found = {name: await said(name) for name in REFUSED}
    large = {"3,600 million declared pixels", "as many pixels as a PNG can say"}
    assert found == {name: TOO_LARGE if name in large else DAMAGED for name in REFUSED}


async def test_what_is_hidden_in_a_picture_does_not_stay() -> None:
    for name, (_, make) in READ.items():
        made = await ready(make())
        assert max(made.width, made.height) <= 1_568, name
        for hidden in (MAKER, b"Exif", b"<script", NO_SUCH_PLACE.encode(), b"word/document.xml"):
            assert (hidden in made.data, hidden in made.small) == (False, False), name


@pytest.mark.parametrize(
    ("make", "size", "corner"),
    [
        (lambda: HEIC, (32, 64), (28, 4)),
        (lambda: turned(orientation=6), (32, 64), (28, 4)),
        (lambda: turned(orientation=3), (64, 32), (60, 28)),
        (lambda: turned("WEBP", 8), (32, 64), (4, 60)),
        (lambda: turned("PNG", 2), (64, 32), (60, 4)),
    ],
    ids=["HEIC", "JPEG", "JPEG upside down", "WebP", "PNG mirrored"],
)
async def test_a_picture_is_turned_upright_and_loses_its_place(
    make: Callable[[], bytes], size: tuple[int, int], corner: tuple[int, int]
) -> None:
    given = make()
    assert MAKER in given
    made = await ready(given)
    for data in (made.data, made.small):
        shown = Image.open(io.BytesIO(data))
        assert (shown.size, dict(shown.getexif()), MAKER in data) == (size, {}, False)
        red, _, blue = shown.convert("RGB").getpixel(corner)  # type: ignore[misc]  # three numbers, of this mode
        assert (blue > 200, red < 60) == (True, True)


class Scripted(Sandbox):
    """Has every program print this, once `AT_ONCE` of them run; counts how many did at the same time."""

    def __init__(self, printed: object = None) -> None:
        super().__init__()
        self.printed = json.dumps(printed)
        self.running = self.most = 0

    async def probe(self) -> Probe:
        return Probe(level="bubblewrap", reason="")

    async def run(self, *_: object, **__: object) -> ProcessResult:
        self.running += 1
        self.most = max(self.most, self.running)
        for _turn in range(20):  # whoever else may begin does so now
            await asyncio.sleep(0)
        self.running -= 1
        return ProcessResult(code=0, out=self.printed, err="")


async def test_a_few_pictures_at_most_are_decoded_at_once() -> None:
    sandbox = Scripted({"error": DAMAGED})
    maker = PictureMaker(sandbox=sandbox)
    ended = await asyncio.gather(*(maker.ready(io.BytesIO(b"x")) for _ in range(20)), return_exceptions=True)
    assert ([str(one) for one in ended], sandbox.most) == ([DAMAGED] * 20, AT_ONCE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": "/../../other/notes"},
        {"height": 10**9},
        {"media_type": "text/html"},
        {"data": "no base64 at all!"},
        {"path": "/etc/passwd"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
async def test_a_decoder_that_was_taken_over_is_not_believed(wrong: dict[str, object]) -> None:
    """Its answer names the file that is kept: a width is no path."""
    whole = {"data": "aGk=", "small": "aGk=", "media_type": "image/png", "width": 2, "height": 1}
    assert (await PictureMaker(sandbox=Scripted(whole)).ready(io.BytesIO(b"x"))).width == 2
    with pytest.raises(UserError, match=TOO_MUCH):
        await PictureMaker(sandbox=Scripted({**whole, **wrong})).ready(io.BytesIO(b"x"))
