# Everything a newcomer needs: `make demo` and `make test`. Both set up their own .venv first.
PYTHON ?= python3
VENV   := .venv
FUZZ_S ?= 600
BIN    := $(VENV)/bin
NATIVE := $(shell find native/src native/host native/foreign native/deepstream native/emulated native/include native/tools) $(wildcard packaging/gst/*) CMakeLists.txt src/headrace/_core/_native_api.py scripts/native_numbers.py scripts/tensorrt_slots.py $(addprefix src/headrace/,config/enums.py infer/cluster.py infer/attach.py)

.PHONY: help build demo demo-gst test test-all test-lowest test-outside test-arm sanitize format lint types stubs ptx docs man site schema operators bench fuzz wheels clean
help:            ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/'

# A plain Debian python3 lacks ensurepip, so the system's pip fills the environment.
$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "headrace needs Python 3.11 or newer; set PYTHON=python3.11" >&2; exit 1; }
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check install --quiet 'pip>=25.1'
	@echo "installing the build tools"
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --group build
	@touch $@

# What tests, checks, documentation and benchmarks need beside headrace itself.
$(VENV)/.dev: $(VENV)/.ready
	@echo "installing the test tools"
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --group dev
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --group tracking --group ocr
	@touch $@

$(VENV)/.built: $(VENV)/.ready $(NATIVE) pyproject.toml
	@include=$$(scripts/python_headers.sh $(PYTHON) $(abspath $(VENV))/headers) && \
	echo "installing what headrace needs and compiling the native core (a minute or two)" && \
	PATH="$(abspath $(BIN)):$$PATH" \
	CMAKE_ARGS="-DPython_INCLUDE_DIR=$$include" $(BIN)/python -m pip \
	--disable-pip-version-check install --quiet --no-build-isolation -e . && \
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-build-isolation --no-deps --force-reinstall ./packaging/gst
	@touch $@

build: $(VENV)/.built  ## set up .venv and compile the native core

demo: build      ## run the pipeline on the demo scene and say where the results are
	$(BIN)/headrace demo
	@command -v headrace >/dev/null || echo "(before that: . $(BIN)/activate)"

GST_PACKAGES = $(shell $(BIN)/python -c 'from headrace.gstreamer.pyds.loading import INSTALL; print(INSTALL.partition("install ")[2])')
demo-gst: build  ## a DeepStream application on the demo scene; installs GStreamer on Debian as root
	@$(BIN)/python -c 'from headrace.gstreamer.pyds.loading import gstreamer; gstreamer()' 2>/dev/null || \
	if [ "$$(id -u)" = 0 ]; then apt-get install -y -q $(GST_PACKAGES); \
	else echo "first, as root: apt install $(GST_PACKAGES)" >&2; exit 1; fi
	cd examples/12_gstreamer && $(abspath $(BIN))/headrace exec pipeline.py ../conveyor/conveyor.mp4 \
	../conveyor/config_infer_primary.txt out.mp4 && echo "examples/12_gstreamer/out.mp4 shows the boxes"

# A test that hangs ends its process with the stacks of its threads.
HANGS := -o faulthandler_timeout=240 -o faulthandler_exit_on_timeout=true
test: build $(VENV)/.dev      ## the tests of every push: no slow ones, a twentieth of the examples of properties
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 4 --dist worksteal -m "not slow" $(HANGS)

test-all: build $(VENV)/.dev  ## the whole test suite, as every night: slow tests and all examples too
	HEADRACE_TEST_PROFILE=full $(BIN)/python -m pytest -q -n 3 --dist worksteal

test-lowest: build/lowest/.lowest  ## the tests of every push with the oldest versions that pyproject.toml allows
	build/lowest/bin/python -m pytest -q -n 3 --dist worksteal -m "not slow" $(HANGS)

build/lowest/.lowest: scripts/lowest.py pyproject.toml
	$(MAKE) VENV=build/lowest build/lowest/.built build/lowest/.dev
	$(PYTHON) scripts/lowest.py > build/lowest/constraints.txt
	build/lowest/bin/python -m pip --disable-pip-version-check install --quiet -c build/lowest/constraints.txt $$(cat build/lowest/constraints.txt)
	@touch $@

test-outside: build $(VENV)/.dev  ## published sources, checked out by you into $HEADRACE_OUTSIDE, run unchanged
	$(BIN)/python -m pytest -q -rs tests/outside

test-arm: build  ## kernels' tests of an ARM wheel in dist/ in an emulator, and libraries of ARM here
	scripts/test_arm.sh $(BIN)/python
	$(BIN)/python -m pytest -q tests/custom/emulated

# Parsers, networks and plugins of tests are C++ that the core calls: memory of both sides is watched. Tests that count resident
# memory see the sanitizers' own instead; leaks are what these find better.
SANITIZED := tests/custom/test_cpp_library.py tests/custom/test_cpp_parsers_instances.py tests/custom/test_cpp_parsers_items.py \
             tests/custom/test_box_layout.py tests/custom/test_stand_ins.py tests/trt/host/test_plugins.py \
             tests/infer/model/test_plugin_factories.py::test_a_caffe_factory_of_old_plugins \
             tests/trt/host/test_functions.py::test_the_functions_engine_is_not_built_again tests/custom/test_cpp_parsers_calls.py
sanitize: build $(VENV)/.dev  ## custom libraries under AddressSanitizer, UBSan and LeakSanitizer
	PATH="$(abspath $(BIN)):$$PATH" scripts/sanitize.sh $(abspath $(BIN))/python \
	"$$(scripts/python_headers.sh $(PYTHON) $(abspath $(VENV))/headers)" \
	-k "not leave_no_memory_behind" $(SANITIZED)

# Headers that a script writes are laid out by it.
CPP := $(shell find native -name '*.cpp' -o -name '*.h' -o -name '*.cu' | xargs grep -L 'Made by scripts/c_headers.py')
format: $(VENV)/.dev          ## lay out the Python and the C++ sources
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

lint: build $(VENV)/.dev      ## ruff, clang-format and clang-tidy, and which folder imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	find native/src native/host native/foreign -name '*.cpp' | xargs -P $$(nproc) -n 1 $(BIN)/clang-tidy --quiet \
	-p $$(ls -td build/cp*/ | head -1) 2>/dev/null

types: build $(VENV)/.dev     ## mypy, strict
	$(BIN)/mypy

stubs: build $(VENV)/.dev     ## what is written by scripts: types of the native core and pyds, options in signatures
	$(BIN)/python scripts/run_options.py
	$(BIN)/python -m nanobind.stubgen -q -m headrace._core._native -o src/headrace/_core/_native.pyi
	$(BIN)/python scripts/native_api.py src/headrace/_core/_native.pyi src/headrace/_core/_native_api.py
	@$(MAKE) --no-print-directory build
	$(BIN)/python scripts/pyds_stubs.py packaging/gst/pyds-stubs/__init__.pyi

ptx: build $(VENV)/.dev       ## the GPU's kernels as PTX, after a change of its source; needs no GPU
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --upgrade --target build/nvrtc \
	nvidia-cuda-nvrtc-cu11==11.8.89
	$(BIN)/python scripts/ptx.py build/nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2

docs: build $(VENV)/.dev      ## documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	HEADRACE_SITE=docs/_build/html $(BIN)/python -m pytest -q tests/docs/test_site.py

man: build $(VENV)/.dev       ## a manual page of each command, docs/_build/man/headrace-*.1
	$(BIN)/sphinx-build -q -b man docs docs/_build/man

site: docs                    ## add this version's documentation to $(SITE), which holds those of earlier ones
	$(BIN)/python -m docs._ext.versions docs/_build/html $(SITE)

bench: build $(VENV)/.dev     ## benchmarks: ratios measured side by side
	$(BIN)/python -m benchmarks

operators: build $(VENV)/.dev ## run ONNX's own operator tests on each runtime and write the table of the docs
	$(BIN)/python -m tests.operators.table docs/operators.md

schema: build    ## bring the generated pages and the schema of pipeline files up to date
	$(BIN)/python -m docs._ext

fuzz: build $(VENV)/.dev      ## fuzz the readers of files, models, the spool, workers and playlists, FUZZ_S seconds each
	$(BIN)/python -m pip --disable-pip-version-check install --quiet atheris
	for reader in config pipeline plan calibration; do \
	  mkdir -p build/fuzz/$$reader && $(BIN)/python tests/fuzz/fuzz_$$reader.py \
	  -max_total_time=$(FUZZ_S) -max_len=4096 -artifact_prefix=build/fuzz/ \
	  build/fuzz/$$reader tests/fuzz/seeds/$$reader || exit 1; done
	for reader in onnx spool worker playlist analytics tracker server csv dewarper message; do \
	  mkdir -p build/fuzz/$$reader && HEADRACE_FUZZ=$$reader $(BIN)/python tests/fuzz/fuzz_readers.py \
	  -max_total_time=$(FUZZ_S) -max_len=4096 -timeout=60 -rss_limit_mb=4096 \
	  -artifact_prefix=build/fuzz/ build/fuzz/$$reader || exit 1; done

wheels: build $(VENV)/.release  ## wheels for x86-64 and ARM and the source distribution into dist/, checked; on Debian
	$(BIN)/python packaging/wheels.py $(WHEELS)

$(VENV)/.release: $(VENV)/.ready
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --group release
	@touch $@

clean:           ## remove everything made here
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache out
