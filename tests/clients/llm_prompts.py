"""`llm` on its command line against a Cortex, set up by its file of models: prints what it got as one line of JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path.cwd() / "llm"
FOLDER.mkdir()
MODEL = f"""- model_id: house
  model_name: m
  api_base: {os.environ["ORIGIN"]}/v1
  api_key_name: cortex
  supports_schema: true
  supports_tools: true
"""
FOLDER.joinpath("extra-openai-models.yaml").write_text(MODEL)
FOLDER.joinpath("keys.json").write_text(json.dumps({"cortex": os.environ["TOKEN"]}))
FOLDER.joinpath("tools.py").write_text(
    'def get_weather(city: str) -> str:\n    "Tell the weather."\n    return "sun"\n'
)


def llm(*arguments: str) -> str:
    env = {**os.environ, "LLM_USER_PATH": str(FOLDER)}
    command = [str(Path(sys.executable).with_name("llm")), "-m", "house", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


got = {
    "streamed": llm("hello"),
    "whole": llm("--no-stream", "hello", "-s", "Be brief.", "-o", "temperature", "0.2", "-o", "max_tokens", "20"),
    "goes_on": llm("-c", "hello again"),
    "shaped": json.loads(llm("--schema", "name, age int", "a dog")),
    "shaped_whole": json.loads(llm("--no-stream", "--schema", "name, age int", "a dog")),
    "answered": llm("--functions", str(FOLDER / "tools.py"), "weather please"),
}
print(json.dumps(got))
