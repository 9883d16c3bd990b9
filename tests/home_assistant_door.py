"""A real Home Assistant that asks Cortex: set up by the flows behind its pages, spoken to as a satellite does."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import yaml
from msgspec import Struct
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection, connect

from tests.listening import listening
from tests.patience import PATIENCE_S
from tests.real_home_assistant import RealHome

PARTS = ("api", "websocket_api", "auth", "config", "conversation", "intent", "assist_pipeline")


def configured(folder: Path, version: str) -> RealHome:
    """One with what a voice assistant needs; the program that turns sounds into sounds only says that it is there."""
    home = RealHome(folder, version)
    program = folder / "ffmpeg"
    program.write_text("#!/bin/sh\necho ffmpeg version 6.1 Copyright\n", encoding="utf-8")
    program.chmod(0o700)
    configuration = {
        "homeassistant": {"name": "Home", "language": "en", "time_zone": "UTC"},
        "http": {"server_host": "127.0.0.1", "server_port": home.port},
        "ffmpeg": {"ffmpeg_bin": str(program)},
        **dict.fromkeys(PARTS),
    }
    (folder / "configuration.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    return home


@asynccontextmanager
async def with_key(origin: str, key: str) -> AsyncIterator[str]:
    """A proxy that adds the key, as `docs/api.md` has it, for versions that have no field for one."""
    async with httpx.AsyncClient(base_url=origin, timeout=PATIENCE_S) as client:

        async def passed(request: Request) -> StreamingResponse:
            kept = {"authorization": f"Bearer {key}", "accept-encoding": "identity"}
            kept |= {"content-type": request.headers["content-type"]} if "content-type" in request.headers else {}
            sent = client.build_request(request.method, request.url.path, headers=kept, content=await request.body())
            answer = await client.send(sent, stream=True)
            kind = answer.headers.get("content-type", "")
            return StreamingResponse(
                answer.aiter_raw(), answer.status_code, media_type=kind, background=BackgroundTask(answer.aclose)
            )

        app = Starlette(routes=[Route("/{path:path}", passed, methods=["GET", "POST"])])
        async with listening(app) as address:
            yield address


class Assistant(Struct, kw_only=True):
    """A voice assistant of this home. `pipeline`: its id; `device`: the satellite that speaks, "" for none."""

    home: "OpenHome"
    pipeline: str
    device: str = ""
    conversation: str | None = None

    async def say(self, text: str) -> str:
        """What is said to these words, or went wrong; the conversation goes on as a satellite's does."""
        events = await self.home.run(
            "assist_pipeline/run",
            start_stage="intent",
            end_stage="intent",
            input={"text": text},
            pipeline=self.pipeline,
            conversation_id=self.conversation,
            **({"device_id": self.device} if self.device else {}),
        )
        wrong = [str(event["data"]["message"]) for event in events if event["type"] == "error"]
        if wrong:
            return wrong[0]
        (end,) = [event["data"]["intent_output"] for event in events if event["type"] == "intent-end"]
        self.conversation = end["conversation_id"]
        return str(end["response"]["speech"]["plain"]["speech"])


class OpenHome(Struct, kw_only=True):
    """A Home Assistant that somebody is logged in to."""

    http: httpx.AsyncClient
    socket: ClientConnection
    ids: "count[int]"

    async def command(self, kind: str, **values: Any) -> Any:
        """What it answers to a command."""
        number = await self._send(kind, values)
        while True:
            told = json.loads(await self.socket.recv())
            if told["id"] == number:
                assert told["success"], told
                return told["result"]

    async def run(self, kind: str, **values: Any) -> list[dict[str, Any]]:
        """The events of a run, to its end."""
        number, events = await self._send(kind, values), []
        while True:
            told = json.loads(await self.socket.recv())
            if told["id"] != number:
                continue
            assert told.get("success", True), told
            if told["type"] == "event":
                events.append(told["event"])
                if events[-1]["type"] in ("run-end", "error"):
                    return events

    async def _send(self, kind: str, values: dict[str, Any]) -> int:
        number = next(self.ids)
        await self.socket.send(json.dumps({"id": number, "type": kind, **values}))
        return number

    async def filled_in(self, begin: dict[str, Any], *forms: dict[str, Any], place: str = "") -> dict[str, Any]:
        """The end of one of the flows behind *Add integration* and *Configure*.

        It gives an address five seconds to answer: on a busy machine the form comes back, and is sent again.
        """
        path = f"/api/config/config_entries/{place}flow"
        step = (await self.http.post(path, json=begin)).json()
        for form in forms:
            assert step["type"] == "form", step
            while True:
                step = (await self.http.post(f"{path}/{step['flow_id']}", json=form)).json()
                if (step.get("errors") or {}).get("base") != "cannot_connect":
                    break
        assert step["type"] == "create_entry", step
        return dict(step)

    async def agent(self, name: str) -> str:
        """The conversation agent of this name, once it is there."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                agents = (await self.command("conversation/agent/list"))["agents"]
                found = [str(one["id"]) for one in agents if one["id"] == f"conversation.{name}"]
                if found:
                    return found[0]
                await asyncio.sleep(0.1)

    async def satellite(self, room: str) -> str:
        """A device that stands in this room."""
        entries = (await self.http.get("/api/config/config_entries/entry?domain=sun")).json()
        entry = entries[0] if entries else (await self.filled_in({"handler": "sun"}, {}))["result"]
        devices = await self.command("config/device_registry/list")
        (device,) = [one["id"] for one in devices if entry["entry_id"] in one["config_entries"]]
        known = {one["name"]: one for one in await self.command("config/area_registry/list")}
        area = known.get(room) or await self.command("config/area_registry/create", name=room)
        await self.command("config/device_registry/update", device_id=device, area_id=area["area_id"])
        return str(device)

    async def assistant(self, agent: str, device: str = "") -> Assistant:
        """A voice assistant whose conversation agent is this one."""
        nothing = dict.fromkeys(("stt_engine", "stt_language", "tts_engine", "tts_language", "tts_voice"))
        wake = dict.fromkeys(("wake_word_entity", "wake_word_id"))
        made = await self.command(
            "assist_pipeline/pipeline/create",
            name=agent,
            language="en",
            conversation_engine=agent,
            conversation_language="en",
            **nothing,
            **wake,
        )
        return Assistant(home=self, pipeline=made["id"], device=device)


@asynccontextmanager
async def logged_in(home: RealHome) -> AsyncIterator[OpenHome]:
    """Its owner, by HTTP and on a socket."""
    headers = {"Authorization": f"Bearer {home.token}"}
    address = f"{home.url.replace('http', 'ws')}/api/websocket"
    async with (
        httpx.AsyncClient(base_url=home.url, headers=headers, timeout=PATIENCE_S) as http,
        connect(address, open_timeout=PATIENCE_S) as socket,
    ):
        await socket.recv()
        await socket.send(json.dumps({"type": "auth", "access_token": home.token}))
        assert json.loads(await socket.recv())["type"] == "auth_ok"
        yield OpenHome(http=http, socket=socket, ids=count(1))
