"""The API of OpenAI's clients: `/v1/responses`. Nothing is kept for the program, so there is none to look up again."""

from fastapi import Request
from fastapi.responses import Response

from cortex.base.errors import NotFound
from cortex.services.api.response_requests import NOT_KEPT, read_response_request
from cortex.services.api.tokens import Caller
from web.bodies import takes
from web.programs import PICTURES_BYTES, answer, body_of, served
from web.response_form import ResponseForm
from web.routes import PageRouter

router = PageRouter()


@router.post("/v1/responses")
@takes(PICTURES_BYTES)
async def respond(request: Request) -> Response:
    """Answer, in the same ways as a chat completion."""

    async def responded(caller: Caller) -> Response:
        asked = await body_of(request, caller, read_response_request)

        def form(id: str, created: int, place: str) -> ResponseForm:
            return ResponseForm(id=f"resp_{id}", created=created, echo=asked.echo, place=place)

        return await answer(request, caller, asked.chat, form)

    return await served(request, responded)


@router.get("/v1/responses/{rest:path}")
@router.post("/v1/responses/{rest:path}")
@router.delete("/v1/responses/{rest:path}")
async def look_up(request: Request, rest: str) -> Response:
    """An earlier response, which there is not."""

    async def none(caller: Caller) -> Response:
        raise NotFound(NOT_KEPT if rest.startswith("resp_") else f"There is no /v1/responses/{rest[:80]} here.")

    return await served(request, none)
