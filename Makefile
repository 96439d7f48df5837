# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-plain test-scale fuzz sanitize security lint types bench bench-gpu bench-engines bench-streaming bench-serving scale-report scale-page figures docs site package test-slow format clean help

help:
	@echo "make demo    install, then train, compare and explain on the built-in tweets (under 3 minutes)"
	@echo "make test    linter, type check and all tests"
	@echo "make test-scale   scoring on real Ray and Spark clusters on this machine, workers killed (Spark needs Java)"
	@echo "make security   try every promise of docs/security.md, and write what came of it there (20 minutes)"
	@echo "make fuzz    let atheris look for inputs that break a reader (SECONDS=60 a target)"
	@echo "make sanitize   the C code's tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make site    the documentation as a website, in site/"
	@echo "make package sdist and wheel in dist/, each tried in a clean environment (test-slow does that too)"
	@echo "make docs    write docs/cli.md from the commands' help"
	@echo "make figures   insert the recorded figures and tables into README and docs"
	@echo "make bench   speed and memory against yardsticks, on a CPU; writes benchmarks/RESULTS.md"
	@echo "make bench-gpu   the same on a GPU"
	@echo "make bench-streaming   memory and time of corpora of 1, 3 and 10 GB; writes docs/streaming.png (two hours)"
	@echo "make bench-engines   batch scoring by processes, Ray and Spark beside the bare runtime (Spark needs Java)"
	@echo "make bench-serving   1 and 2 workers under load, and memory over a million requests"
	@echo "make scale-report   cost of each stage, of 10^9 documents, of clusters: measure, simulate, write docs/SCALE.md"

# pip reads the constraint from the venv's own pip.conf, so later installs by hand keep the CPU torch too.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	printf '[install]\nconstraint = %s\n' "$(CURDIR)/constraints.txt" > .venv/pip.conf
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/mpad demo --force

# A process on each core, four at most: a container may see more cores than it is given.
CORES := $(shell cores=$$(nproc 2> /dev/null || echo 2); echo $$(( cores < 4 ? cores : 4 )))
TEST := $(BIN)/pytest -n $(CORES) --dist loadfile
test: lint types
	$(TEST) -m 'not slow'
	$(MAKE) test-plain

# Everything that compiled code computes has a plain version, which runs where there is no compiler.
CORE := tests/text tests/graph tests/test_model.py tests/test_equations.py tests/kernels/test_whole_networks.py tests/training tests/inference tests/test_network.py
test-plain: $(READY)
	MPAD_NATIVE=off $(TEST) $(CORE)

test-scale: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray,spark]'
	$(BIN)/pytest -m scale

SECONDS ?= 60
fuzz: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt 'atheris>=3'
	for target in tokenizer data-files vector-files checkpoints http-bodies; do \
	  $(BIN)/python -m security.coverage_guided $$target -max_total_time=$(SECONDS) -print_final_stats=1 || exit 1; done

sanitize: $(READY)
	$(BIN)/python -m security.sanitize

security: $(READY)
	$(BIN)/python -m security

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# MPAD_DATA=folder measures on real corpora. A GPU machine brings its own torch: there, PYTHON is used as it is.
bench: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.speed.serving

bench-gpu:
	PYTHONPATH=src:. $(PYTHON) -m benchmarks.speed.gpu

bench-streaming: $(READY)
	$(BIN)/python -m benchmarks.speed.streaming

bench-engines: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray,spark]'
	$(BIN)/python -m benchmarks.speed.engines

bench-serving: $(READY)
	$(BIN)/python -m benchmarks.speed.serving_load

# scale-page: the same page and figure from the record that is there, in seconds.
scale-report: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	$(BIN)/python -m benchmarks.scale

scale-page: $(READY)
	$(BIN)/python -m benchmarks.scale --rounds 0

figures: $(READY)
	$(BIN)/python -m benchmarks.figures

docs: $(READY)
	$(BIN)/typer mpad.cli.main utils docs --name mpad --output docs/cli.md

# The documentation as a website, in site/; a link that leads nowhere is an error.
site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

# sdist and wheel; the test installs each in a clean environment.
package: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build --outdir dist
	$(MAKE) test-slow

test-slow: $(READY)
	$(BIN)/pytest -m slow

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis demo-model
