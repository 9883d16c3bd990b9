"""A role's page: what is set there holds, says that it is mine, and can be taken back field by field."""

from cortex.app import Cortex
from tests.web.conftest import Browser
from tests.web.test_models import LOCAL

PAGE = "/account/roles/coder"


async def test_what_is_set_here_holds_and_says_so(house: Cortex, ada: Browser) -> None:
    await ada.post("/models", **LOCAL)
    answer = await ada.http.post(PAGE, data={"models": ["offline", "local"], "mode": "chat", "max_rounds": "7"})
    assert answer.headers["location"] == "/account/roles"
    role = await house.roles.role(ada.user, "coder")
    assert (role.mode, role.max_rounds) == ("chat", 7)
    assert (await house.models.registry(ada.user)).chain(role) == ("offline", "local")
    assert (await ada.get(PAGE)).text.count("set by you") == 3
    assert (await ada.get("/account/roles")).text.count(">yours<") == 3


async def test_one_value_goes_back_to_the_default_and_the_others_stay(house: Cortex, ada: Browser) -> None:
    shipped = await house.roles.role(ada.user, "coder")
    await ada.post("/models", **LOCAL)
    await ada.http.post(PAGE, data={"models": ["offline"], "mode": "chat", "max_rounds": "7"})
    await ada.post(PAGE, default="mode")
    role = await house.roles.role(ada.user, "coder")
    assert (role.mode, role.max_rounds) == (shipped.mode, 7)
    await ada.post(PAGE, default="models")
    await ada.post(PAGE, default="max_rounds")
    role = await house.roles.role(ada.user, "coder")
    assert (role.max_rounds, (await house.models.registry(ada.user)).chain(role)) == (shipped.max_rounds, ("local",))
    assert "set by you" not in (await ada.get(PAGE)).text


async def test_an_emptied_field_is_the_default_too(house: Cortex, ada: Browser) -> None:
    await ada.post(PAGE, mode="all", max_rounds="9")
    await ada.post(PAGE, mode="", max_rounds="")
    assert (await house.roles.in_force(ada.user, "coder")).origins["mode"] != "browser"


async def test_wrong_rounds_are_refused_beside_their_field_and_change_nothing(house: Cortex, ada: Browser) -> None:
    answer = await ada.post(PAGE, mode="all", max_rounds="99")
    assert answer.status_code == 422
    assert 'aria-describedby="f-max_rounds-e f-max_rounds-h"' in answer.text
    assert 'value="99"' in answer.text
    assert (await house.roles.role(ada.user, "coder")).mode != "all"
    assert (await ada.post(PAGE, default="prompt")).status_code == 422
    assert (await ada.post(PAGE, mode="sometimes")).status_code == 422


async def test_models_that_a_role_file_names_are_shown_and_not_offered(house: Cortex, ada: Browser) -> None:
    folder = house.settings.home / ada.user.id / "roles"
    folder.mkdir(parents=True)
    (folder / "coder.md").write_text("---\nmodels: [offline]\n---\nWrite code.\n")
    page = (await ada.get(PAGE)).text
    assert 'name="models"' not in page
    assert "overrides this" in page


async def test_a_role_that_is_not_mine_to_take_is_not_there(ada: Browser, bob: Browser) -> None:
    assert (await ada.get("/account/roles/admin")).status_code == 200
    assert (await bob.get("/account/roles/admin")).status_code == 404
    assert (await bob.post("/account/roles/admin", max_rounds="2")).status_code == 404
    assert (await ada.get("/account/roles/nobody")).status_code == 404
