# Two commands on a fresh machine (Python 3.11, pip, venv, make, a C++ compiler): make reproduce, make test.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.installed
OUT ?= runs/reproduce
WORKERS ?= 2
FUZZ_SECONDS ?= 60
SEED ?= 0

unexport PYTHONDONTWRITEBYTECODE  # what Python compiles is kept: hundreds of processes start

.DEFAULT_GOAL := help
.PHONY: help install test test-slow test-kill fuzz lint reproduce readme bench docs sanitize wheel clean

help:  ## these lines
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 12

install: $(STAMP)  ## the virtual environment .venv with the package and all that its tests need

$(STAMP): pyproject.toml CMakeLists.txt $(wildcard native/*.cpp native/*.h)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[test]'
	@$(BIN)/python -c 'import flexphase._native' 2>/dev/null || echo "flexphase: no compiled engine (is there a C++ compiler?); falling back to the JAX engine."
	@touch $@

$(STAMP).docs: pyproject.toml CMakeLists.txt $(wildcard native/*.cpp native/*.h)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[test,docs]'
	@touch $@ $(STAMP)

test: lint  ## ruff, pyright and the tests
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test-slow: install  ## the heavier statistical and kill tests
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m slow
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m codegen

test-kill: install  ## commands killed at random moments, small disks and limits (KILLS=100 SEED=0)
	$(BIN)/python -m pytest -q -s -p no:xdist -m kill tests/test_kill_commands.py

fuzz: install  ## random command lines, harmed files, tapes under ASan and UBSan (FUZZ_SECONDS=60)
	$(BIN)/python tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS) --seed $(SEED)
	SCRIPT=tests/fuzz/tapes.py sh native/sanitize.sh --seconds $(FUZZ_SECONDS) --seed $(SEED)

lint: install  ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

reproduce: install  ## every figure of the paper at small size, real MNIST included, with a report (OUT=folder)
	$(BIN)/flexphase reproduce all --quick --out $(OUT) --resume

readme: install  ## run the README's example; its figure goes to docs/figures
	sed -n '/^```python/,/^```/{/^```/d;p}' README.md | (cd docs/figures && $(CURDIR)/$(BIN)/python -)

bench: install  ## speed as ratios, with correctness beside them
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

docs: $(STAMP).docs  ## the documentation site in docs/_build/html; a warning or a dead link is an error
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	$(BIN)/python tools/check_site.py docs/_build/html

sanitize: install  ## the compiled engines under AddressSanitizer and UBSan
	sh native/sanitize.sh

wheel:  ## sdist and wheel in dist/, tried in a new environment without a compiler
	PYTHON=$(PYTHON) sh tools/check_wheel.sh dist

clean:  ## caches, builds and the virtual environment; never runs/
	rm -rf .venv build dist docs/_build docs/reference .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
