"""The list of scenes, and which of them a row runs."""

from collections.abc import Awaitable, Callable

from tests.model_servers import scenes_errors as errors
from tests.model_servers import scenes_history as history
from tests.model_servers import scenes_stream as stream
from tests.model_servers import scenes_talk as talk
from tests.model_servers.rows import Row
from tests.model_servers.stage import Stage

Scene = Callable[[Stage], Awaitable[None]]

SCENES: tuple[Scene, ...] = (
    talk.chat,
    talk.stream,
    talk.not_streamed,
    talk.one_call,
    talk.calls_in_a_row,
    talk.calls_side_by_side,
    talk.careless_zero,
    talk.careless_none,
    talk.careless_first_id,
    talk.careless_empty_ids,
    talk.odd_calls,
    talk.thinking_answer,
    talk.thinking_with_tools,
    talk.thinking_in_history,
    talk.ids_used_twice,
    talk.marks_in_text,
    talk.picture,
    talk.picture_to_a_blind_model,
    talk.stop,
    talk.late_tools,
    history.long_history,
    history.ended_behind_a_tool,
    history.two_users,
    history.switch_and_back,
    history.switch_within_a_turn,
    history.system_in_the_middle,
    history.empty_answers,
    history.broken_arguments,
    history.no_tools_any_more,
    history.prefix_kept,
    stream.finish_missing,
    stream.finish_odd,
    stream.odd_lines,
    stream.odd_chunks,
    stream.whole_for_a_stream,
    stream.cut_anywhere,
    stream.ends_at_a_limit,
    stream.long_answer,
    stream.cached_usage,
    stream.no_usage,
    errors.too_long,
    errors.too_long_in_stream,
    errors.too_long_goes_on,
    errors.says_no_tools,
    errors.no_tools_goes_on,
    errors.says_no_pictures,
    errors.no_pictures_goes_on,
    errors.output_limit,
    errors.output_limit_goes_on,
    errors.parameter_refused,
    errors.parameter_goes_on,
    errors.schema_refused,
    errors.schema_goes_on,
    errors.unknown_model,
    errors.no_credit,
    errors.key_refused,
    errors.overloaded,
    errors.server_fails,
    errors.filtered,
    errors.filtered_in_the_middle,
    errors.ok_with_an_error,
    errors.proxy_page,
    errors.error_event,
    errors.connection_drops,
    errors.call_it_could_not_read,
)
BY_NAME = {scene.__name__: scene for scene in SCENES}
# The second try needs what the first is refused for.
_NEEDS = {
    "too_long_goes_on": "too_long",
    "no_tools_goes_on": "says_no_tools",
    "no_pictures_goes_on": "says_no_pictures",
    "output_limit_goes_on": "output_limit",
    "parameter_goes_on": "parameter_refused",
    "schema_goes_on": "schema_refused",
}


def why_not(row: Row, scene: str) -> str:
    """Why the row does not run this scene; "" where it does."""
    if scene == "call_it_could_not_read" and row.id != "groq":
        return "only Groq parses the model's calls itself and refuses"
    return row.without.get(scene) or row.without.get(_NEEDS.get(scene, ""), "")
