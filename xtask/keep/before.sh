# A CPU on which something else runs. `after` is the same CPU without it.
taskset -c 1 timeout 2 sh -c 'while :; do :; done' &
whylate gaps --cpus 1 --duration 500ms --warmup 200ms --threshold 1us --worst 5 --seed 1 -o before
wait
