# Three flows through a test network: one in each direction beside load.
whylate lab up --name lab
whylate rtt --bed lab --rate 1kpps --wait block --duration 300ms --warmup 100ms --seed 1 \
    --flow "load: rate=2kpps size=1400 one-way" --flow "back: rate=1kpps back" -o flows
whylate lab down --name lab
