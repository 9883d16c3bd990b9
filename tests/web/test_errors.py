"""What goes wrong has one shape: page in the frame, fragment, JSON; and the health of the house is told."""

import httpx
import pytest
from fastapi import FastAPI

from cortex.app import Cortex
from tests.web.conftest import Browser


async def test_a_missing_page_is_told_in_the_readers_own_frame(ada: Browser) -> None:
    answer = await ada.get("/nowhere")
    assert answer.status_code == 404
    assert 'id="side"' in answer.text
    assert answer.headers["x-request-id"] in answer.text
    part = await ada.fragment("/nowhere")
    assert "<html" not in part.text
    assert answer.headers["x-request-id"] != part.headers["x-request-id"]


@pytest.mark.parametrize(
    ("form", "page"),
    [("/start/tell", "/start"), ("/models/connect/use", "/models/connect"), ("/stop-all/outward", "/stop-all")],
)
async def test_the_address_of_a_form_leads_up_to_its_page(ada: Browser, form: str, page: str) -> None:
    answer = await ada.http.get(form, headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status_code, answer.headers.get("location")) == (303, page)
    assert (await ada.get(page)).status_code == 200
    assert (await ada.http.get(form, headers={"Accept": "application/json"})).status_code == 404


async def test_a_program_gets_json(ada: Browser, visitor: httpx.AsyncClient) -> None:
    answer = await ada.http.get("/tasks/nothing", headers={"Accept": "application/json"})
    error = answer.json()["error"]
    assert (answer.status_code, error["status"], error["request_id"]) == (404, 404, answer.headers["x-request-id"])
    anonymous = await visitor.get("/tasks", headers={"Accept": "application/json"})
    assert anonymous.status_code == 401


async def test_a_fragment_asked_by_nobody_goes_to_login(house: Cortex, visitor: httpx.AsyncClient) -> None:
    answer = await visitor.get("/tasks", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/login")


@pytest.mark.parametrize(
    ("shown", "place"),
    [
        pytest.param("http://test/c/12?before=3#q12", "/login?next=/c/12%3Fbefore%3D3", id="page"),
        pytest.param("http://test/", "/login", id="start page"),
        pytest.param("http://test//evil.example", "/login?next=//evil.example", id="refused by the login page"),
        pytest.param("http://[", "/login", id="no address"),
    ],
)
async def test_a_form_sent_under_an_ended_login_leads_back_to_its_page(
    house: Cortex, visitor: httpx.AsyncClient, shown: str, place: str
) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": shown, "Accept": "text/html, text/event-stream"}
    answer = await visitor.post("/c/12/messages", data={"text": "hello"}, headers=headers)
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, place)


async def test_a_stream_under_an_ended_login_is_refused_without_a_place_to_go(
    house: Cortex, visitor: httpx.AsyncClient
) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://test/c/12", "Accept": "text/html, text/event-stream"}
    answer = await visitor.get("/c/12/events", headers=headers)
    assert (answer.status_code, "hx-redirect" in answer.headers) == (401, False)
    assert answer.json()["error"]["message"] == "Log in first."


async def test_when_the_database_breaks_there_is_still_a_page_with_its_headers(
    house: Cortex, ada: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    async with house.runtime.db.connection() as connection:
        await connection.exec_driver_sql("ALTER TABLE logins RENAME TO gone")
        await connection.commit()
    answer = await ada.get("/tasks")
    assert answer.status_code == 500
    assert "Something went wrong" in answer.text
    assert "logins" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-request-id"] in caplog.text


async def test_foreign_hosts_and_endless_bodies_are_refused(app: FastAPI, ada: Browser) -> None:
    assert (await ada.http.get("/tasks", headers={"Host": "evil.example"})).status_code == 400
    assert (await ada.http.get("/healthz", headers={"Host": "10.0.0.9"})).status_code == 200
    assert (await ada.http.post("/tasks", content=b"x" * 2_000_001)).status_code == 413


async def test_readiness_follows_the_tables(house: Cortex, visitor: httpx.AsyncClient) -> None:
    assert (await visitor.get("/readyz")).status_code == 200
    await house.runtime.db.move_to("base")
    assert (await visitor.get("/readyz")).status_code == 503


async def test_only_an_admin_is_told_how_the_house_is_doing(ada: Browser, bob: Browser) -> None:
    assert "Checks" in (await ada.get("/health")).text
    assert "Checks" not in (await bob.get("/health")).text


async def test_static_files_are_kept_for_ever_under_their_hash(app: FastAPI, visitor: httpx.AsyncClient) -> None:
    address = app.state.pages.static_url("vendor/app.css")
    assert "immutable" in (await visitor.get(address)).headers["cache-control"]
    assert (await visitor.get("/static/vendor/app.css?v=old")).headers["cache-control"] == "no-cache"
    plain = await visitor.get(address, headers={"Accept-Encoding": "identity"})
    packed = await visitor.get(address, headers={"Accept-Encoding": "gzip, br"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "br"
    assert packed.headers["content-type"] == plain.headers["content-type"]
    assert int(packed.headers["content-length"]) < len(plain.content) / 4
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/"):
        assert (await visitor.get(path)).status_code == 404


@pytest.mark.parametrize("name", ["a" * 250 + ".css", "a" * 5_000 + ".css", "a/" * 2_500 + "a.css"])
async def test_a_file_of_any_name_is_not_there(visitor: httpx.AsyncClient, name: str) -> None:
    assert (await visitor.get(f"/static/{name}")).status_code == 404
