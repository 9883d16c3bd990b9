"""A program that asks while the daemon ends or is killed: it hears an end, and nothing of its answer is left open."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import openai
import pytest

from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll
from tests.patience import PATIENCE_S

LONG = "Tell me something long, please. " * 20


@pytest.mark.parametrize(("is_killed", "words"), [(False, ">Stopped.<"), (True, 'class="foot"')])
def test_the_daemon_ends_in_the_middle_of_an_answer(tmp_path: Path, is_killed: bool, words: str) -> None:
    house = Daemon(tmp_path / "home", delay_ms=150)
    house.start()
    try:
        with Caller(house) as ada:
            ada.set_up()
            page = ada.post("/account/tokens", name="Editor", role="orchestrator").text
            token = (
                page.partition("It is shown only once:")[2].partition("<code")[2].partition(">")[2].partition("<")[0]
            )
            began, places = Event(), []

            def ask() -> str:
                with openai.OpenAI(base_url=f"{house.origin}/v1", api_key=token, max_retries=0) as client:
                    raw = client.chat.completions.with_raw_response.create(
                        model="cortex", messages=[{"role": "user", "content": LONG}], stream=True
                    )
                    places.append(raw.headers["x-cortex-conversation"])
                    try:
                        for chunk in raw.parse():
                            if chunk.choices[0].delta.content:
                                began.set()
                    except openai.APIError as error:
                        return type(error).__name__
                return "ended"

            with ThreadPoolExecutor(1) as pool:
                asking = pool.submit(ask)
                assert began.wait(PATIENCE_S)
                if is_killed:
                    house.kill9()
                else:
                    assert house.stop() == 0
                heard = asking.result(PATIENCE_S)
            house.start()
            path = "/c/" + places[0].partition("/c/")[2]
            poll(lambda: words in ada.get(path).text)
            assert heard
    finally:
        house.close()
