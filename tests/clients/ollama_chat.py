"""The `ollama` package against a Cortex: prints what it got as one line of JSON."""

import json
import os

import ollama

client = ollama.Client(host=os.environ["ORIGIN"], headers={"Authorization": f"Bearer {os.environ['TOKEN']}"})
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}


def get_weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: where
    """
    return f"sun in {city}"


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


messages = [user("weather please")]
first = client.chat(model="m", messages=messages, tools=[get_weather])
messages.append(first.message)
for call in first.message.tool_calls or ():
    messages.append(
        {"role": "tool", "tool_name": call.function.name, "content": get_weather(**call.function.arguments)}
    )
try:
    client.chat(model="nope", messages=[user("hello")])
    unknown = 0
except ollama.ResponseError as error:
    unknown = error.status_code
got = {
    "models": [one.model for one in client.list().models],
    "window": client.show("m").modelinfo["cortex.context_length"],
    "chat": client.chat(model="m", messages=[user("hello")]).message.content,
    "streamed": "".join(one.message.content for one in client.chat(model="m", messages=[user("hello")], stream=True)),
    "called": [call.function.arguments for call in first.message.tool_calls or ()],
    "answered": client.chat(model="m", messages=messages, tools=[get_weather]).message.content,
    "shaped": json.loads(client.chat(model="m", messages=[user("a dog")], format=SCHEMA).message.content),
    "generated": client.generate(model="m", prompt="hello").response,
    "unknown": unknown,
}
print(json.dumps(got))
