# Everything from a fresh clone; `make` alone lists what there is.
#
#   make PYTHON=python3.12 book      another Python (3.11 or newer)
#   make CONSTRAINTS= test           the newest versions instead of those of constraints.txt

PYTHON      ?= python3
CONSTRAINTS ?= -c constraints.txt
PROFILE     ?= laptop
JOBS        ?= 1

VENV      := .venv
BIN       := $(VENV)/bin
INSTALLED := $(VENV)/installed
CLEAN     := build/colab
TIMES     := build/times.txt
NOT_SLOW  := -m "not slow"

# $(call part,NAME,COMMAND) runs one part of the tests and notes its seconds.
part = @echo "== $(1)"; start=$$(date +%s); $(2) && \
	printf '%6d s  %s\n' $$(( $$(date +%s) - start )) "$(1)" >> $(TIMES)

.DEFAULT_GOAL := help
.PHONY: help install book test test-all reproduce bench colab clean

help:
	@echo "make book         execute the chapters that changed, check them and build the pages"
	@echo "make test         lint, unit tests, all chapters at smoke, notebooks, pages"
	@echo "make test-all     the same with the slow tests"
	@echo "make reproduce    compute a chapter's rows and publish them:"
	@echo "                  make reproduce CHAPTER=masked_language_modelling PROFILE=laptop"
	@echo "make bench        measure speed against the reference implementations"
	@echo "make colab        run the Colab copies in an environment of their own"
	@echo "make clean        remove all that was built, but not $(VENV)"

install: $(INSTALLED)

# The version of torch is exact, so that a build for the CPU that is at hand is taken.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) -e '.[dev]'
	@touch $@

book: $(INSTALLED)
	@$(BIN)/unmasked build --jobs $(JOBS)

# The notebooks are tested as they are committed: no part of this writes into book/.
test: $(INSTALLED)
	@mkdir -p build && rm -rf _build $(TIMES)
	$(call part,lint,$(BIN)/ruff check . && $(BIN)/ruff format --check .)
	$(call part,unit tests,$(BIN)/python -m pytest -n 2 $(NOT_SLOW) tests)
	$(call part,chapters recomputed at smoke,$(BIN)/unmasked run all --profile smoke --recompute --jobs $(JOBS))
	$(call part,committed notebooks run again,$(BIN)/python -m pytest -n 2 --dist loadfile -o filterwarnings= \
		--nbval-lax --nbval-current-env book/*.ipynb)
	$(call part,gate,$(BIN)/unmasked check)
	$(call part,pages built,$(BIN)/python -c 'from unmasked.book.build import build; build()')
	$(call part,pages checked,$(BIN)/unmasked check)
	@echo "== all parts passed" && cat $(TIMES)

test-all:
	@$(MAKE) test NOT_SLOW=

reproduce: $(INSTALLED)
	@test -n "$(CHAPTER)" || \
		{ echo "Name the chapter: make reproduce CHAPTER=... PROFILE=smoke|laptop|gpu" >&2; exit 2; }
	@$(BIN)/unmasked reproduce $(CHAPTER) --profile $(PROFILE)

bench: $(INSTALLED)
	@$(BIN)/unmasked bench

# What the copies' first cell installs, from this checkout, and ipykernel, which Colab itself has.
# They run in an empty folder.
colab: pyproject.toml constraints.txt
	@rm -rf $(CLEAN) && mkdir -p $(CLEAN)/empty
	@$(PYTHON) -m venv $(CLEAN)/venv
	$(CLEAN)/venv/bin/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) . ipykernel
	@for copy in $(abspath $(wildcard book/colab/*.ipynb)); do \
		echo "== $$(basename $$copy)"; \
		(cd $(CLEAN)/empty && ../venv/bin/python -m papermill --no-progress-bar -k python3 \
			$$copy ../$$(basename $$copy)) || exit 1; \
	done

clean:
	rm -rf _build build book/_static/mathjax .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
