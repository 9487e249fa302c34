# make run    builds whylate and runs the one-minute check-up of this host
# make test   installs what the tests use and runs them
# make bench  gaps beside oslat, interleaved on one CPU, with ratios
# make lint   format, lints and the checks of the layout

CARGO ?= cargo

.PHONY: run test bench lint deps

run:
	$(CARGO) build --release --locked
	./target/release/whylate

test: deps
	WHYLATE_TESTS_REQUIRE=$(if $(CI),everything,nothing) $(CARGO) test --locked --workspace --no-fail-fast
	$(CARGO) build --locked --package whylate --features schema
	$(CARGO) xtask bench --test
	$(CARGO) xtask aarch64

bench: deps
	$(CARGO) build --release --locked
	$(CARGO) xtask bench

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) xtask check
	$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz

deps:
	./xtask/install-test-tools.sh
