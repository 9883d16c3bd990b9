"""LiteLLM against a Cortex, by four of its protocols: prints what it got as one line of JSON."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no download

import litellm

litellm.telemetry = False
ORIGIN, TOKEN = os.environ["ORIGIN"], os.environ["TOKEN"]
OPENAI = {"api_base": f"{ORIGIN}/v1", "api_key": TOKEN}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "w", "parameters": PARAMETERS}}
DOG = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "dog", "schema": DOG}}


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def text_of(chunks: list) -> str:
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


called = litellm.completion("openai/m", user("weather"), tools=[TOOL], **OPENAI).choices[0].message
history = [
    *user("weather"),
    called.model_dump(),
    {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "sun"},
]
usage = {"include_usage": True}
responses = [*litellm.responses(model="openai/m", input="hello", stream=True, **OPENAI)]
local = {"api_base": ORIGIN, "api_key": TOKEN}
got = {
    "chat": litellm.completion("openai/m", user("hello"), temperature=0.1, max_tokens=30, seed=1, **OPENAI),
    "ollama": litellm.completion("ollama_chat/m", user("hello"), **local),
    "answered": litellm.completion("openai/m", history, tools=[TOOL], **OPENAI),
    "shaped": litellm.completion("openai/m", user("a dog"), response_format=FORMAT, **OPENAI),
}
got = {name: answer.choices[0].message.content for name, answer in got.items()}
got["streamed"] = text_of([*litellm.completion("openai/m", user("hello"), stream=True, stream_options=usage, **OPENAI)])
got["ollama_streamed"] = text_of([*litellm.completion("ollama_chat/m", user("hello"), stream=True, **local)])
got["called"] = called.tool_calls[0].function.arguments
got["response"] = litellm.responses(model="openai/m", input="hello", **OPENAI).output[0].content[0].text
got["last_event"] = str(responses[-1].type.value)
print(json.dumps(got))
