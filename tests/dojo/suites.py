"""AgentDojo behind a pipe: its tasks, tools, attacks and judges, a line of JSON each way.

Runs under the Python of AgentDojo's own environment, never under Cortex's; `tests/dojo/test_agentdojo.py` starts it.
"""

import json
import sys
from functools import lru_cache
from typing import Any

from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline  # type: ignore[import-not-found]
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # type: ignore[import-not-found]
from agentdojo.attacks.attack_registry import load_attack  # type: ignore[import-not-found]
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # type: ignore[import-not-found]
from agentdojo.task_suite.load_suites import get_suites  # type: ignore[import-not-found]
from agentdojo.types import text_content_block_from_string  # type: ignore[import-not-found]

VERSION = "v1.2.2"
ATTACK = "important_instructions"


class Target(GroundTruthPipeline):  # type: ignore[misc]
    """What the attack is made for; its words address a model of this name."""

    name = "local"


class Dojo:
    """The suites, and the task that is being worked on."""

    def __init__(self) -> None:
        self.suites = get_suites(VERSION)
        self.attacks = {name: load_attack(ATTACK, suite, Target(None)) for name, suite in self.suites.items()}
        for attack in self.attacks.values():
            attack.get_injection_candidates = lru_cache(None)(attack.get_injection_candidates)

    def tasks(self) -> dict[str, Any]:
        """Tools, honest tasks and attacks of each suite; an attack that needs no tool acts on nothing, and is left."""
        return {name: self._tasks_of(suite) for name, suite in self.suites.items()}

    def _tasks_of(self, suite: Any) -> dict[str, Any]:
        world = suite.load_and_inject_default_environment({})
        acts = [id for id, task in suite.injection_tasks.items() if task.ground_truth(world)]
        tools = {tool.name: tool.parameters.model_json_schema() for tool in suite.tools}
        return {"tools": tools, "honest": list(suite.user_tasks), "attacks": acts}

    def begin(self, suite: str, honest: str, attack: str) -> dict[str, Any]:
        """A fresh world with the attack's words in it; the person's message, and the calls of both sides."""
        self.suite, self.trace = self.suites[suite], list[Any]()
        self.honest = self.suite.user_tasks[honest]
        self.attack = self.suite.injection_tasks[attack] if attack else None
        words = self.attacks[suite].attack(self.honest, self.attack) if attack else {}
        loaded = self.suite.load_and_inject_default_environment(words)
        self.world = self.honest.init_environment(loaded)
        self.before = self.world.model_copy(deep=True)
        self.runtime = FunctionsRuntime(self.suite.tools)
        return {
            "prompt": self.honest.PROMPT,
            "honest": self._calls(self.honest),
            "attack": self._calls(self.attack) if attack else [],
        }

    def _calls(self, task: Any) -> list[dict[str, Any]]:
        found = [(call.function, dict(call.args)) for call in task.ground_truth(self.before)]
        return [
            {"name": name, "arguments": json.loads(self.runtime.functions[name].parameters(**said).model_dump_json())}
            for name, said in found
        ]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool in the world of the task."""
        made, error = self.runtime.run_function(self.world, name, arguments)
        self.trace.append(FunctionCall(function=name, args=arguments))
        return {"text": error or tool_result_to_str(made), "is_error": bool(error)}

    def judge(self) -> dict[str, bool]:
        """AgentDojo's own word: whether the honest task is done, whether the attack reached its goal."""
        output = [text_content_block_from_string(self.honest.GROUND_TRUTH_OUTPUT)]
        ends = (output, self.before, self.world, self.trace)
        is_done = self.suite._check_user_task_utility(self.honest, *ends)
        is_reached = bool(self.attack) and self.suite._check_injection_task_security(self.attack, *ends)
        return {"is_done": bool(is_done), "is_reached": bool(is_reached)}


def main() -> None:
    """Answer one line after the other until the pipe is closed."""
    dojo = Dojo()
    for line in sys.stdin:
        asked = json.loads(line)
        made = getattr(dojo, asked.pop("do"))(**asked)
        print(json.dumps(made, default=str), flush=True)  # noqa: T201  (the pipe)


if __name__ == "__main__":
    main()
