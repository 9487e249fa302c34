# A bridge of the kernel.
whylate device --box bridge --sizes 64,512 --rate 2kpps --rounds 3 --duration 100ms --warmup 50ms \
    --no-throughput --seed 1 -o device
