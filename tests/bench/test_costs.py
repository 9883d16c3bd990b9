from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.agent.prompt import with_tail
from cortex.base import tokens
from cortex.base.errors import UserError
from cortex.base.messages import user
from cortex.base.model import Profile
from tests.bench import costs, goals, talks
from tests.bench.cache import Cache, Piece
from tests.bench.conftest import over_the_house
from tests.bench.ground import CACHED, BenchGround
from tests.bench.ground import ground as shipped_ground
from tests.bench.made import grown
from tests.bench.regimes import REGIMES, Regime, long_talks
from tests.bench.replay import Tally, replay
from tests.bench.talks import Call, TalkTurn

TINY = Profile(caches=True, read_factor=0.1, write_factor=1.25, minimum_tokens=100, life_s=300)


def piece(name: str, tokens: int) -> Piece:
    return Piece(text=name, tokens=tokens)


TOOLS, SYSTEM, FIRST, ANSWER = piece("tools", 900), piece("system", 100), piece("first", 50), piece("answer", 30)


def test_the_first_request_writes_all_and_the_next_reads_what_stands() -> None:
    cache = Cache(TINY)
    assert cache.pay([TOOLS, SYSTEM, FIRST], 30, 0).cost == pytest.approx(1.25 * 1050 + 30)
    paid = cache.pay([TOOLS, SYSTEM, FIRST, ANSWER], 10, 60)
    assert paid.cost == pytest.approx(0.1 * 1050 + 1.25 * 30 + 10)
    assert not paid.is_rewrite


def test_a_change_in_the_prefix_is_paid_to_the_end() -> None:
    cache = Cache(TINY)
    cache.pay([TOOLS, SYSTEM, FIRST], 0, 0)
    paid = cache.pay([TOOLS, piece("another system", 100), FIRST], 0, 10)
    assert paid.cost == pytest.approx(0.1 * 900 + 1.25 * 150)
    assert paid.is_rewrite


@pytest.mark.parametrize(
    ("profile", "later_s"),
    [(TINY, 301), (replace(TINY, minimum_tokens=2_000), 10)],
    ids=["the life is over", "under the minimum"],
)
def test_nothing_is_read_once_the_life_is_over_or_under_the_minimum(profile: Profile, later_s: int) -> None:
    cache = Cache(profile)
    cache.pay([TOOLS, SYSTEM, FIRST], 0, 0)
    paid = cache.pay([TOOLS, SYSTEM, FIRST, ANSWER], 0, later_s)
    assert paid.cost == pytest.approx(1.25 * 1080)
    assert not paid.is_rewrite


def test_a_common_beginning_under_the_minimum_is_not_read() -> None:
    cache = Cache(replace(TINY, minimum_tokens=1_000))
    cache.pay([TOOLS, SYSTEM, FIRST], 0, 0)
    assert cache.pay([TOOLS, piece("other", 200)], 0, 1).cost == pytest.approx(1.25 * 1100)


def test_without_a_cache_every_token_has_one_price() -> None:
    cache = Cache(Profile())
    assert [cache.pay([TOOLS, SYSTEM], 5, at).cost for at in (0, 1)] == [1005, 1005]


def test_a_local_slot_reads_for_nothing_and_its_output_is_not_counted() -> None:
    cache = Cache(replace(TINY, read_factor=0.0, write_factor=1.0, minimum_tokens=1), output_factor=0.0)
    assert [cache.pay([TOOLS, SYSTEM][:n], 7, 0).cost for n in (1, 2)] == [900, 100]


LAMP = Call(tool="lamp_set", arguments={"room": "hall"}, result="The lamp is on.")
ON = TalkTurn(text="turn on the lamp", rounds=((LAMP,),), answer="It's on.")
HELLO = TalkTurn(text="hello", rounds=(), answer="Hi!")


def played(talk: tuple[TalkTurn, ...], recipe: str, regime: Regime, ground: BenchGround) -> Tally:
    tally = Tally()
    replay(talk, regime, ground.over(ground.snapshot, profile=regime.profile), recipe, tally)
    return tally


def test_sending_all_costs_what_the_request_weighs(ground: BenchGround) -> None:
    tally = played((HELLO,), "all", Regime(profile=Profile()), ground)
    tools = sum(entry.tokens_full for entry in ground.snapshot.entries if not entry.is_meta)
    said = with_tail([user("hello")], "[Fri 2026-11-20 10:00 UTC]")
    system = tokens.count_text_message("system", "You are a test.")
    assert tally.requests == 1
    assert tally.cost == tools + system + tokens.count_message(said[0]) + tokens.count("Hi!")


def test_the_floor_is_a_talk_whose_calls_need_no_tools(ground: BenchGround) -> None:
    regime, whole, floor = Regime(profile=Profile()), Tally(), Tally()
    over = ground.over(ground.snapshot, profile=regime.profile)
    replay((ON, HELLO), regime, over, "all", whole)
    replay((ON, HELLO), regime, over, "all", floor, is_bare=True)
    tools = sum(entry.tokens_full for entry in ground.snapshot.entries if not entry.is_meta)
    assert (floor.requests, floor.extra) == (whole.requests, 0)
    assert whole.cost - floor.cost == whole.requests * tools


def test_what_lies_above_the_floor_is_a_share_of_what_can_be_chosen() -> None:
    assert [costs.above_floor(cost, 20) for cost in (20, 60, 100, 180)] == [0.0, 50.0, 100.0, 200.0]


def test_a_round_with_a_call_is_a_request_of_its_own(ground: BenchGround) -> None:
    tally = played((ON, HELLO), "all", Regime(profile=CACHED), ground)
    assert (tally.requests, tally.extra, tally.wanted, tally.had, tally.rewrites) == (3, 0, 1, 1, 0)


def test_a_tool_that_cannot_be_had_makes_the_person_ask_again_with_all(ground: BenchGround) -> None:
    odd = TalkTurn(text="zzz", rounds=((Call(tool="repo_log", arguments={}, result="3 commits"),),), answer="Three.")
    tally = played((odd,), "inara", Regime(profile=Profile()), ground)
    assert (tally.wanted, tally.had, tally.extra, tally.asked_again) == (1, 0, 1, 1)
    assert tally.requests == 3  # the answer that it can't, the call, the answer


def test_a_tool_behind_discovery_costs_its_discovery_round(ground: BenchGround) -> None:
    odd = TalkTurn(
        text="repo log", rounds=((Call(tool="repo_log", arguments={}, result="3 commits"),),), answer="Three."
    )
    tally = played((odd,), "ora", Regime(profile=Profile()), ground)
    assert (tally.extra, tally.asked_again, tally.requests) == (1, 0, 3)


def test_the_same_work_costs_the_same_twice(ground: BenchGround) -> None:
    regime = Regime(profile=CACHED)
    assert played((HELLO, ON), "cortex", regime, ground) == played((HELLO, ON), "cortex", regime, ground)


def test_idle_beyond_the_life_is_paid_again(ground: BenchGround) -> None:
    warm = played((ON, HELLO), "all", Regime(profile=CACHED), ground)
    cold = played((ON, HELLO), "all", Regime(profile=CACHED, gap_s=1_800), ground)
    tools = sum(entry.tokens_full for entry in ground.snapshot.entries if not entry.is_meta)
    assert cold.cost - warm.cost > 0.9 * (1.25 - 0.1) * tools


def test_a_registry_grows_to_its_size_with_tools_that_come_last_but_meta(ground: BenchGround) -> None:
    more = grown(ground.snapshot, 60, 1)
    assert sum(not entry.is_meta for entry in more.entries) == 60
    assert len({entry.name for entry in more.entries}) == len(more.entries)
    assert more.entries[:7] == ground.snapshot.entries[:7]
    assert all(entry.is_meta for entry in more.entries[-2:])
    assert grown(ground.snapshot, 60, 1) == more
    assert grown(ground.snapshot, 60, 2).entries != more.entries


def test_long_talks_hold_each_chat_equally_often() -> None:
    chats = tuple((TalkTurn(text=str(n), rounds=(), answer="")) for n in range(4))
    assert [[turn.text for turn in talk] for talk in long_talks(tuple((chat,) for chat in chats))] == [
        ["0", "1", "2"],
        ["2", "3", "0"],
    ]


def test_a_slip_in_a_script_is_told_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('\n{"conversation": "a", "turn": 0, "text": "hi"}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"chats\.jsonl, line 2: answer: is needed"):
        talks.read(path)


def test_a_result_is_stretched_to_a_real_length_the_same_each_time() -> None:
    long = talks.stretched("12 files", 300)
    assert long == talks.stretched("12 files", 300)
    assert long.startswith("12 files\n")
    assert talks.stretched("12 files", 2) == "12 files"


def test_every_regime_of_the_design_is_there() -> None:
    assert list(REGIMES) == [
        "none",
        "cold",
        "warm10",
        "warm30",
        "half_price",
        "one_task_10_rounds",
        "cron",
        "local_slot",
        "local_cold",
        "warm_120_tools",
    ]


def test_a_local_prefix_is_rewritten_at_most_once_a_talk_when_the_first_tool_is_needed() -> None:
    found = costs.measured(("local_slot",), ("cortex",), shipped_ground(), 1, lambda line: None)
    assert found["details"]["local_slot"]["cortex"]["rewrites"] <= 1
    assert goals.COSTS["local_slot"].is_met(found["regimes"]["local_slot"]["cortex"])


def test_shares_are_of_sending_all_and_unknown_tools_are_told() -> None:
    lines: list[str] = []
    found = costs.measured(("cron",), ("inara", "all"), over_the_house(), 1, lines.append)
    assert found["regimes"]["cron"]["all"] == 100.0
    assert set(found["regimes"]["cron"]) == {"inara", "all"}
    assert set(found["details"]["cron"]["all"]) == {
        "recall",
        "tokens",
        "requests",
        "extra_requests",
        "asked_again",
        "rewrites",
    }
    floor = found["floors"]["cron"]
    assert 0 < floor < 100
    assert found["above_floor"]["cron"]["all"] == 100.0
    assert found["above_floor"]["cron"]["inara"] == costs.above_floor(found["regimes"]["cron"]["inara"], floor)
    assert "left out" in lines[0]
    with pytest.raises(UserError, match="There is no regime 'hot'"):
        costs.measured(("hot",), (), over_the_house(), 1, lines.append)
