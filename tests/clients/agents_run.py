"""openai-agents against a Cortex, over chat completions and over Responses: prints what it got as one line of JSON."""

import asyncio
import json
import os

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)


class Dog(BaseModel):
    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"sun in {city}"


async def run(kind: type[OpenAIChatCompletionsModel] | type[OpenAIResponsesModel]) -> dict[str, object]:
    client = AsyncOpenAI(base_url=f"{os.environ['ORIGIN']}/v1", api_key=os.environ["TOKEN"], max_retries=0)
    model = kind(model="m", openai_client=client)
    agent = Agent(name="A", instructions="Tell the weather.", tools=[get_weather], model=model)
    streamed = Runner.run_streamed(agent, "weather please")
    events = [event.type for event in [one async for one in streamed.stream_events()]]
    first = await Runner.run(agent, "weather please")
    again = await Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "hello"}])
    dog = await Runner.run(Agent(name="D", instructions="Describe.", model=model, output_type=Dog), "a dog")
    return {
        "streamed": streamed.final_output,
        "has_events": "raw_response_event" in events,
        "whole": first.final_output,
        "again": again.final_output,
        "dog": dog.final_output.model_dump(),
    }


async def main() -> None:
    kinds = (OpenAIChatCompletionsModel, OpenAIResponsesModel)
    print(json.dumps([await run(kind) for kind in kinds]))


asyncio.run(main())
