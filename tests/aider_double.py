"""A stand-in for aider where the real one is not installed: the options that Cortex gives it, its ways and words.

It asks the model twice as aider does (an edit, a commit's message), applies one SEARCH/REPLACE block to the file that
it is given, and commits. `install` makes the environment that it is found in. That the real one does the same is shown
by `tests/services/agents/test_coding.py`, which runs with both.
"""

import sys
from pathlib import Path

PROGRAM = """#!/usr/bin/python3
import json, os, re, subprocess, sys, urllib.error, urllib.request

words = sys.argv[1:]
if "--version" in words:
    print("aider 0.86.2")
    sys.exit(0)
message, file = words[words.index("--message") + 1], words[-1]
print("Aider v0.86.2", flush=True)

def ask(system, text):
    body = {"model": "cortex", "messages": [{"role": "system", "content": system}, {"role": "user", "content": text}]}
    asked = urllib.request.Request(os.environ["OPENAI_API_BASE"] + "/chat/completions", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        print("litellm.BadRequestError:", error.read().decode())
        sys.exit(0)  # as the real one

answer = ask("Act as an expert developer.", message)
found = re.search(r"<<<<<<< SEARCH\\n(.*?)=======\\n(.*?)>>>>>>> REPLACE", answer, re.S)
if found:
    with open(file) as before:
        text = before.read()
    with open(file, "w") as after:
        after.write(text.replace(*found.groups()))
    print("Applied edit to", file)
    said = ask("Write a commit message.", "the diff").strip()
    subprocess.run(["git", "commit", "--quiet", "--all", "--message", said], check=True)
"""


def install(folder: Path) -> Path:
    """The double in an environment of its own; its program."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / "bin" / "python").symlink_to("/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable)
    program = folder / "bin" / "aider"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return program
