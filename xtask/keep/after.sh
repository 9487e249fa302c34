# The CPU of `before`, and nothing else runs there.
whylate gaps --cpus 1 --duration 500ms --warmup 200ms --threshold 1us --worst 5 --seed 1 -o after
