# Everything starts from here; each target sets up what it needs: Python >= 3.11 with venv, make and bash are enough.

VENV := .venv
PY := $(VENV)/bin/python3
UNIT := not slow and not root and not processes
PURE := $(addprefix tests/,lang sched submit fields wire lifecycle manifest conf commands)
SOURCES := slurmbridge tests integration docs k8s setup.py

.PHONY: help setup demo test check check-code unit unit-pure unit-rest unit-waits format integration scenario bench soak replay docs lock clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST)

setup: ## make .venv with the locked dependencies and this tree
	@bash integration/prefix.sh $(VENV)

demo: setup ## run example scripts through a daemon on two virtual nodes
	@bash docs/demo/run.sh $(VENV)/bin

test: setup ## the whole test suite
	$(PY) -m pytest tests

check: setup ## format, lint, types, layers, unit tests
	@$(MAKE) --no-print-directory --keep-going --jobs=3 --output-sync=target unit-waits unit-rest check-code unit-pure

check-code:
	$(VENV)/bin/ruff format --check --output-format=concise $(SOURCES)
	$(VENV)/bin/ruff check --quiet $(SOURCES)
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

unit: setup ## unit tests alone
	@$(MAKE) --no-print-directory --keep-going --jobs=3 --output-sync=target unit-waits unit-rest unit-pure

unit-pure: # with the next one two halves of much the same length, for two CPUs
	$(PY) -m pytest --quiet $(PURE) -m "$(UNIT)"

unit-rest:
	$(PY) -m pytest --quiet tests $(PURE:%=--ignore=%) --ignore=tests/runtime -m "$(UNIT)"

unit-waits: # a minute of waiting for servers on paper, and little for a CPU to do
	$(PY) -m pytest --quiet tests/runtime -m "$(UNIT)"

format: setup ## format the code
	$(VENV)/bin/ruff format $(SOURCES)
	$(VENV)/bin/ruff check --fix $(SOURCES)

integration: setup ## recorded answers, kills and everything else that needs processes, root or time
	$(PY) -m pytest tests -m "slow or root or processes"
	$(PY) -m pytest integration/cluster integration/kube -m "not soak"

scenario: setup ## a few tests on a real Kubernetes, which the first run builds in about ten minutes (root)
	$(PY) -m pytest integration/cluster integration/kube -m scenario

replay: setup ## recorded answers of a real Slurm (root)
	$(PY) -m pytest tests/oracle --capture=no

bench: setup ## ratios and absolute figures
	@$(VENV)/bin/slurmbridge bench daemon

soak: setup ## 1,000 kills of the daemon while jobs are submitted and run, chaos, 1,000 nodes, real clients, a real Slurm beside
	$(PY) integration/soak_kills.py --bin $(VENV)/bin --kills 1000
	$(PY) integration/soak_chaos.py --bin $(VENV)/bin --seconds 600
	$(PY) integration/soak_nodes.py --bin $(VENV)/bin
	$(PY) -m pytest integration/clients integration/side_by_side
	test -n "$$KUBECONFIG" || $(PY) -m integration.cluster up --cpus 6 # nodes that take more pods at once than CPUs are there
	$(PY) -m pytest integration/kube -m soak
	test -n "$$KUBECONFIG" || $(PY) -m integration.cluster down
	SLURMBRIDGE_RANDOM_EXAMPLES=1 $(PY) -m pytest $(PURE) -m "$(UNIT)"

docs: setup ## write the generated reference pages
	$(PY) docs/generate.py

lock: ## the newest versions that the ranges allow, tried in a fresh environment
	@bash integration/lock.sh

clean: ## remove what was built
	rm -rf $(VENV) build slurmbridge.egg-info .mypy_cache .ruff_cache .import_linter_cache .hypothesis
