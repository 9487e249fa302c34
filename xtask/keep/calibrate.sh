# Two backends through a delay line.
whylate calibrate --backends udp,packet --rate 2kpps --delays 10us --runs 3 --duration 400ms \
    --warmup 100ms --seed 1 -o calibrate
