# Everything sets itself up from pinned, hashed packages; all it takes is Python >= 3.11 with venv, and make >= 3.81.

PYTHON ?= python3
PY := .venv/bin/python
# For `make demo`: an access log in combined format (gzip too), and how many of its lines to take.
LOG ?=
LIMIT ?=
export LOG LIMIT
# For `make up` and `make drill`: how many seconds a minute of the alarms has; 60 and 3 without.
MINUTE ?=
# For `make figures`: `capacity`, `fan-in`, `flood`, `groups`, `log-bytes`, `redrive`, `strain`, `tenants` or `wake`, all without.
FIGURE ?=
# For `make drill`: one of `python -m demo.drills --help`, or `all`.
NAME ?= all
# For `make simulate`: how many seeds, from which (one alone is one seed again).
SEEDS ?=
SEED ?=
# For `make mutants`: which (all without), and how many generated ones, chosen by SEED.
MUTANT ?=
SAMPLE ?=
# For `make model`.
EXAMPLES ?=
# For `make synth`.
STAGE ?= dev
CONTEXT ?=
# For `make test`, e.g. ARGS='-k fence'.
ARGS ?=
LOCK := UV_CUSTOM_COMPILE_COMMAND='make lock' $(PY) -m uv pip compile -q --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links

# The set-up compiles no packages, so Python must keep what it compiles: otherwise each process compiles it all again.
unexport PYTHONDONTWRITEBYTECODE

SOURCES := app.py demo functions shared stacks tests tools

.DEFAULT_GOAL := help
.PHONY: help demo drill test test-fast cover up down lint synth docs dashboard figures bench simulate mutants scope model lock clean setup-app setup-dev wheel

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: setup-app ## deploy to an embedded AWS, run real jobs, check every figure (LOG=access.log.gz LIMIT=1000)
	@$(PY) -m demo $(if $(LOG),--log "$$LOG") $(if $(LIMIT),--limit "$$LIMIT")

test: setup-dev ## run the tests (ARGS='-k fence' for some of them)
	@$(PY) -m tools.run_tests $(ARGS)

test-fast: setup-dev ## run the tests that take at most two minutes together and need no embedded AWS
	@$(PY) -m tools.run_tests --fast $(ARGS)

cover: setup-dev ## run the tests and print the lines that none reaches
	@$(PY) -m tools.run_tests --cov --cov-report=term-missing:skip-covered --cov-fail-under=95 $(ARGS)

up: setup-app ## deploy to an embedded AWS and leave it running to play with (MINUTE=5 hastens its alarms)
	@$(PY) -m tidemill.local up $(if $(MINUTE),--minute-seconds $(MINUTE))

down: setup-app ## stop what `make up` started and remove its state
	@$(PY) -m tidemill.local down

figures: setup-app ## measure on an embedded AWS and print (FIGURE=capacity, fan-in, flood, groups, log-bytes, redrive, strain, tenants or wake)
	@$(PY) -m demo.figures $(FIGURE)

bench: setup-dev ## measure beside the textbook build and other systems: writes, calls, CPU, latencies, losses, dollars
	@$(PY) -m tests.benchmarks
	@$(PY) -m tests.benchmarks.peers

drill: setup-app ## break an embedded AWS, and fix it with the commands of the runbook (NAME=disabled-publisher, or all)
	@$(PY) -m demo.drills $(NAME) $(if $(MINUTE),--minute-seconds $(MINUTE))

simulate: setup-dev ## run the real handlers in a simulated AWS that tries to lose a job (SEEDS=2000, SEED=42)
	@$(PY) -m tests.simulation run $(if $(SEEDS),--seeds $(SEEDS)) $(if $(SEED),--seed $(SEED))

mutants: setup-dev ## break the protocol on purpose, and see each break caught (SAMPLE=100 SEED=1 adds generated ones)
	@$(PY) -m tests.simulation mutants $(if $(MUTANT),'$(MUTANT)')
	$(if $(MUTANT),,@$(PY) -m tools.run_tests -m mutant -n auto)
	$(if $(SAMPLE),@$(PY) -m tests.simulation mutants --sample '$(SAMPLE)' $(if $(SEED),--seed '$(SEED)'))

scope: setup-dev ## play every schedule of two jobs, two workers and at most three faults
	@$(PY) -m tests.simulation.scope

model: setup-dev ## act as Hypothesis thinks of, against a model of the protocol (EXAMPLES=20000)
	@$(PY) -m tests.model $(if $(EXAMPLES),--examples $(EXAMPLES))

wheel: setup-dev ## build the wheel, install it into an empty environment and test a job type there
	@$(PY) -m tools.check_wheel

lint: setup-dev ## style, formatting, types, import rules, tidiness
	@$(PY) -m ruff check $(SOURCES)
	@$(PY) -m ruff format --check $(SOURCES)
	@$(PY) -m mypy
	@.venv/bin/lint-imports
	@$(PY) -m tools.tidiness
	@$(PY) -m tools.plain_english --names

synth: setup-app ## write the templates to cdk.out, without account or credentials (STAGE=dev CONTEXT=python_version=3.12)
	@$(PY) -m tidemill.local synth --stage '$(STAGE)' $(if $(CONTEXT),--context '$(CONTEXT)')

dashboard: setup-dev ## play the demo and draw the dashboard with its data to docs/dashboard.png
	@$(PY) -m tools.dashboard_picture docs/dashboard.png

docs: setup-dev ## write the generated documents anew
	@$(PY) -m tools.state_machine > docs/internals/state-machine.md
	@$(PY) -m tools.cli_reference docs/reference/cli.md

lock: setup-dev ## compile the hashed requirements from pyproject.toml
	$(LOCK) pyproject.toml --group app --extra cdk --extra cli --extra local -o requirements.txt
	$(LOCK) pyproject.toml --group app --extra cdk --extra cli --extra local --group dev --group functions -c requirements.txt -o requirements-dev.txt
	$(LOCK) --group functions -c requirements-dev.txt -o functions/requirements.txt
	$(LOCK) --group peers -c requirements-dev.txt -o requirements-peers.txt
	$(LOCK) --group local -c requirements-dev.txt -o shared/tidemill/local/requirements.txt

clean: ## remove everything that is not in the repository, and stop what `make up` started
	@if [ -x $(PY) ] && [ -d .tidemill/up ]; then $(PY) -m tidemill.local down; fi
	rm -rf .venv .tidemill node_modules build cdk.out *.egg-info .coverage .*_cache .hypothesis
	@find app.py demo functions shared stacks tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

setup-app setup-dev:
	@command -v '$(PYTHON)' >/dev/null || { echo "tidemill: there is no $(PYTHON); \
	install Python 3.11 or newer (Debian and Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python)" >&2; exit 1; }
	@'$(PYTHON)' -m tools.bootstrap $(subst setup-,,$@)
