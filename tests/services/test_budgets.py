from pathlib import Path

from tests.living_house import living_house


async def test_a_roles_token_budget_stops_the_next_model_call_with_a_text(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house:
        await house.cortex.roles.change(house.admin, "orchestrator", {"budget_tokens": 100})
        cid = await house.conversation()
        await house.say(cid, "add milk to my shopping list")
        end = (await house.events(cid, "turn.end"))[0].payload
        said = (await house.events(cid, "part.end"))[-1].payload["text"]
        assert (end["state"], await house.events(cid, "error")) == ("done", [])
        assert "the role allows 100" in said
        assert len(await house.events(cid, "usage")) == 1
