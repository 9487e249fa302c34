# The ways to run, side by side.
whylate gaps --matrix --cpus 1 --duration 100ms --warmup 100ms --threshold 1us --worst 3 --seed 1 -o matrix
