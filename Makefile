# make run    builds whylate and runs the one-minute check-up of this host
# make test   installs what the tests use and runs them, one suite at a time on a machine, after mending
#             what killed ones left
# make soak [ONLY=..] [BASE=..] [RUNS=..]
#             live tests that were changed since BASE, or those named so, again and again under planted
#             noise: its record stands in the commit
# make test-dpdk   the same for the feature dpdk
# make bench-dpdk  passing frames on beside testpmd, round trips beside those of its net_af_xdp,
#             interleaved, with ratios
# make bench  gaps beside oslat, wake-ups beside cyclictest, round trips beside sockperf and qperf,
#             frames forwarded beside testpmd, interleaved, with ratios
# make lint   format, lints and the checks of the layout

CARGO ?= cargo

# What is missing is a skip with its reason, and in CI a failure; random cases are the same each time.
export WHYLATE_TESTS_REQUIRE ?= $(if $(CI),everything,nothing)
export PROPTEST_RNG_SEED ?= 1

.PHONY: run test soak test-dpdk bench bench-dpdk lint deps

run:
	$(CARGO) build --release --locked
	./target/release/whylate

test: deps
	$(CARGO) xtask test
	$(CARGO) xtask aarch64 --check

soak: deps
	BASE="$(BASE)" RUNS="$(RUNS)" $(CARGO) xtask soak $(ONLY)

test-dpdk: deps
	timeout 1500 $(CARGO) test --locked -p whylate-dpdk -p whylate --features whylate/dpdk --no-fail-fast -- --nocapture --test-threads 1

bench: deps
	$(CARGO) build --release --locked
	$(CARGO) xtask bench
	WHYLATE_TESTS_CLAIMS=must WHYLATE_TESTS_PAIRS=20 $(CARGO) test --release --locked --workspace --test live -- peers cyclictest:: rates:: nine_tenths half_of_the_round_trip planted_delays:: breakdown:: --include-ignored --nocapture --test-threads 1
	WHYLATE_TESTS_CLAIMS=must $(CARGO) test --release --locked --workspace --test live -- --ignored calibrate:: device:: killer2017:: --nocapture --test-threads 1
	WHYLATE_TESTS_CLAIMS=must $(CARGO) test --release --locked --workspace --test live -- at_each_step calibrate_others:: --include-ignored --nocapture --test-threads 1
	WHYLATE_TESTS_PACKETS=10000000 $(CARGO) test --release --locked --workspace --test live -- exactly_those_that_come_out --include-ignored --nocapture --test-threads 1
	$(CARGO) test --release --locked --workspace --lib -- delay::proofs::many --nocapture
	$(CARGO) xtask aarch64

bench-dpdk: deps
	WHYLATE_TESTS_CLAIMS=must WHYLATE_TESTS_PAIRS=20 $(CARGO) test --release --locked -p whylate-dpdk --features dpdk --test testpmd -- --include-ignored --nocapture --test-threads 1
	WHYLATE_TESTS_CLAIMS=must WHYLATE_TESTS_PAIRS=20 $(CARGO) test --release --locked -p whylate --features dpdk --test dpdk -- beside --include-ignored --nocapture --test-threads 1

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(if $(CI),$(CARGO) clippy --locked --workspace --all-targets --features whylate/dpdk -- -D warnings)
	$(CARGO) xtask check
	$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz

deps:
	./xtask/install-test-tools.sh
