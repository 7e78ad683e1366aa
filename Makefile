# `make demo` and `make test` are all a newcomer needs; the venv is made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: check test fast hostile churn soak demo conformance conformance-upstream upstreams-e2e proto docs search-eval bench bench-peers clean

$(READY): pyproject.toml
	@echo "installing everything into $(VENV): a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

check: $(READY)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/gen_proto.py --check
	$(BIN)/python scripts/gen_docs.py --check
	$(BIN)/python -m pytest -q tests/unit

test: $(READY)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile

# Malformed HTTP and JSON-RPC, smuggling, forged tokens, SSRF, bombs: everything that wishes us ill.
hostile: $(READY)
	$(BIN)/python -m pytest -q tests/hostile

churn: $(READY)
	ARION_TDS_CHURN=200 $(BIN)/python -m pytest -q -s --show-capture=no tests/e2e/test_churn.py

# Ten minutes of churn, faults, slow readers and clients of both eras: memory, descriptors, tasks, errors.
soak: $(READY)
	ARION_TDS_SOAK=600 $(BIN)/python -m pytest -q -s --show-capture=no tests/e2e/test_soak.py

demo: $(READY)
	@$(BIN)/python scripts/demo.py

conformance: $(READY)
	suite=$$($(BIN)/python scripts/node_packages.py conformance) && $(BIN)/python -m conformance.run "$$suite" $(WRITE)

# The suite behind the gateway: all fixture tools in one MCP server, and the gateway as the suite's client.
conformance-upstream: $(READY)
	suite=$$($(BIN)/python scripts/node_packages.py conformance) && $(BIN)/python -m conformance.upstream "$$suite" $(WRITE)

# Servers that other people wrote, with those on Python, whose environments take a minute to install.
upstreams-e2e: $(READY)
	ARION_TDS_INSTALL_UPSTREAMS=1 $(BIN)/python -m pytest -q tests/wire/upstreams tests/e2e -k upstreams

proto: $(READY)
	$(BIN)/python scripts/gen_proto.py

search-eval: $(READY)
	$(BIN)/python -m benchmarks.search_eval

# Every benchmark: about ten minutes. WRITE=1 puts the table into docs/benchmarks.md, QUICK=1 only shows that each works.
bench: $(READY)
	$(BIN)/python -m benchmarks.all $(if $(QUICK),--quick) $(if $(WRITE),--write)

# Ours and three other gateways, installed on first use, in front of the same services: about ten minutes.
bench-peers: $(READY)
	GRPC_VERBOSITY=ERROR $(BIN)/python -m benchmarks.peers $(if $(QUICK),--quick) $(if $(WRITE),--write)

docs: $(READY)
	$(BIN)/python scripts/gen_docs.py
	$(BIN)/python scripts/walkthrough.py

clean:
	rm -rf $(VENV) .node build dist *.egg-info
