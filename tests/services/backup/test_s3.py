"""Backups in a store: against a double that checks each signature by itself, and (`full`) against moto's server."""

import hashlib
import hmac
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import httpx
import pytest

from cortex.base.errors import UserError
from cortex.base.settings import Settings
from cortex.services.backup import restore
from cortex.services.backup.backups import Backups
from cortex.services.backup.places import Store, place_of
from cortex.services.backup.s3 import EMPTY, S3, Bucket
from tests.databases import house_settings
from tests.living_house import living_house
from tests.patience import PATIENCE_S
from tests.ports import port_for

KEY_ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
PAGE = 2


class StoreDouble:
    """Objects of one bucket in memory; what is not signed as the specification says is answered by 403."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.transport = httpx.MockTransport(self._answer)
        self.loses_bytes = False

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        if not self._is_signed(request, body):
            return httpx.Response(403, text="<Error><Code>SignatureDoesNotMatch</Code></Error>")
        bucket, _, key = unquote(request.url.raw_path.decode().partition("?")[0]).removeprefix("/").partition("/")
        if bucket != "house":
            return httpx.Response(404, text="<Error><Code>NoSuchBucket</Code></Error>")
        if request.method == "PUT":
            assert int(request.headers["content-length"]) == len(body)
            self.objects[key] = body[:-1] if self.loses_bytes else body
            return httpx.Response(200)
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return httpx.Response(204)
        if key:
            found = self.objects.get(key)
            missing = httpx.Response(404, text="<Error><Code>NoSuchKey</Code></Error>")
            return missing if found is None else httpx.Response(200, content=found)
        return httpx.Response(200, text=self._listed(dict(request.url.params)))

    def _listed(self, query: dict[str, str]) -> str:
        names = sorted(name for name in self.objects if name.startswith(query["prefix"]))
        start = int(query.get("continuation-token", 0))
        page, rest = names[start : start + PAGE], names[start + PAGE :]
        items = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(self.objects[name])}</Size></Contents>" for name in page
        )
        more = f"<NextContinuationToken>{start + PAGE}</NextContinuationToken>" if rest else ""
        return f"<ListBucketResult>{items}{more}</ListBucketResult>"

    def _is_signed(self, request: httpx.Request, body: bytes) -> bool:
        told = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,"
            r"SignedHeaders=([^,]+),Signature=(\w{64})",
            request.headers.get("authorization", ""),
        )
        if told is None or request.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return False
        key_id, day, region, names, signature = told.groups()
        path, _, query = request.url.raw_path.decode().partition("?")
        assert parse_qsl(query) == sorted(parse_qsl(query))
        lines = "".join(f"{name}:{request.headers[name]}\n" for name in names.split(";"))
        canonical = f"{request.method}\n{path}\n{query}\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        stamp = request.headers["x-amz-date"]
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{day}/{region}/s3/aws4_request\n{digest}"
        key = f"AWS4{SECRET}".encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return (key_id, hmac.new(key, text.encode(), hashlib.sha256).hexdigest()) == (KEY_ID, signature)


@pytest.fixture
def double() -> StoreDouble:
    return StoreDouble()


def _bucket(**other: str) -> Bucket:
    facts = {"endpoint": "http://store.test:9000", "region": "eu-central-1", "name": "house"}
    return Bucket(**{**facts, "key_id": KEY_ID, "secret": SECRET, **other})


def test_a_request_is_signed_as_the_specification_shows() -> None:
    """The example "GET Bucket (List Objects)" of the specification, with its key, date and signature."""
    bucket = _bucket(endpoint="https://examplebucket.s3.amazonaws.com", region="us-east-1")
    store = S3(bucket, clock=lambda: datetime(2013, 5, 24, tzinfo=UTC))
    signed = store._signed("GET", "/", "max-keys=2&prefix=J", EMPTY)["authorization"]
    assert signed.endswith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")


async def test_files_are_kept_listed_fetched_and_removed(double: StoreDouble, tmp_path: Path) -> None:
    store = Store(S3(_bucket(), transport=double.transport), "a prefix & more/")
    (tmp_path / "file").write_bytes(os.urandom(3_000_000))
    names = [f"cortex-2026110{day}T030000Z.backup" for day in range(1, 6)]
    for name in names:
        await store.put(tmp_path / "file", name)
    double.objects["a prefix & more/cortex-notes.txt"] = b"mine"
    assert [one.name for one in await store.kept()] == names[::-1]
    assert {one.size_bytes for one in await store.kept()} == {3_000_000}
    await store.fetch(names[0], tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "file").read_bytes()
    await store.remove(names[0])
    assert [one.name for one in await store.kept()] == names[:0:-1]


@pytest.mark.parametrize(
    ("other", "words"),
    [({"secret": "wrong"}, "403 SignatureDoesNotMatch"), ({"name": "other"}, "404 NoSuchBucket")],
    ids=["secret", "bucket"],
)
async def test_a_refusal_is_told(double: StoreDouble, other: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        await S3(_bucket(**other), transport=double.transport).objects("")


async def test_what_arrives_cut_is_noticed(double: StoreDouble, tmp_path: Path) -> None:
    double.loses_bytes = True
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(UserError, match="only 4 of the backup's 5 bytes"):
        await Store(S3(_bucket(), transport=double.transport), "").put(tmp_path / "file", "cortex-1")


async def test_a_store_that_is_away_is_told(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(UserError, match="does not answer"):
            await S3(_bucket(endpoint=f"http://127.0.0.1:{closed.getsockname()[1]}")).objects("")


def test_a_store_needs_its_settings(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="“S3 address”"):
        place_of(Settings(home=tmp_path, backup_to="s3://house"))


ALLOW_ALL = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}'
SETUP = ("CreateUser", "PutUserPolicy", "CreateAccessKey")


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """moto's server in an environment of its own, which checks signatures: its address, and a key that may do all."""
    place = tmp_path_factory.mktemp("moto")
    python = place / "venv" / "bin" / "python"
    venv = [sys.executable, "-m", "venv", str(place / "venv")]
    install = [str(python), "-m", "pip", "install", "-q", "moto[s3,iam,server]"]
    if any(subprocess.run(one, check=False).returncode for one in (venv, install)):
        pytest.skip("needs the package moto, and an index that has it")
    port = port_for(tmp_path_factory)
    counted = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(len(SETUP) + 1)}
    server = subprocess.Popen(
        [python.with_name("moto_server"), "-p", str(port)], env=counted, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        yield address, *_set_up(address)
    finally:
        server.terminate()
        server.wait()


def _set_up(address: str) -> tuple[str, str]:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with socket.create_connection((address.rpartition("/")[2].split(":")[0], int(address.rpartition(":")[2]))):
                break
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.2)
    signed, text = "AWS4-HMAC-SHA256 Credential=x/20130524/us-east-1/%s/aws4_request", ""
    for action in SETUP:
        form = {"Action": action, "UserName": "cortex", "PolicyName": "all", "PolicyDocument": ALLOW_ALL}
        form |= {"Version": "2010-05-08"}
        answer = httpx.post(address, data=form, headers={"Authorization": signed % "iam"}, timeout=PATIENCE_S)
        text = answer.raise_for_status().text
    headers = {"Authorization": signed % "s3"}
    httpx.put(f"{address}/house", headers=headers, timeout=PATIENCE_S).raise_for_status()
    found = [re.search(f"<{name}>(.*?)</{name}>", text) for name in ("AccessKeyId", "SecretAccessKey")]
    assert all(found)
    return found[0][1], found[1][1]  # type: ignore[index]


@pytest.mark.full
async def test_a_real_store_keeps_a_backup_and_gives_it_back(moto: tuple[str, str, str], tmp_path: Path) -> None:
    address, key_id, secret = moto
    home = tmp_path / "home"
    async with living_house(home) as house:
        await house.conversation()
    settings = house_settings(
        home,
        backup_to="s3://house/kept-here",
        backup_s3_endpoint=address,
        backup_s3_key_id=key_id,
        backup_s3_secret=secret,
        backup_passphrase="tulip quarry lantern",
    )
    made = await Backups(settings).make()
    assert [one.name for one in await Backups(settings).kept()] == [made.name]
    (tmp_path / "fetched").mkdir()
    file = await restore.fetched(settings, made.name, tmp_path / "fetched")
    assert (await restore.look(settings, file, settings.backup_passphrase)).manifest.made_at
    wrong = settings.model_copy(update={"backup_s3_secret": "wrong"})
    with pytest.raises(UserError, match="403"):
        await Backups(wrong).make()
