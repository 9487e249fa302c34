# A file of rt-app, with its phases and timers.
whylate threads examples/control-loop.json --cpus 1 --duration 300ms --seed 1 -o steps
