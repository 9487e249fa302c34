# A delay line that has a CPU for itself, with a client and a reflector at its two ends.
whylate lab up --name kept --kind open
whylate delay to-client to-server --bed kept --cpus 0 --delay 100us --no-netem --duration 2s --seed 1 -o delay &
sleep 1
whylate rtt --bed kept --wait block --cpus 1 --reflector-cpus 1 --rate 1kpps --duration 300ms --warmup 100ms \
    --no-trace --seed 1 -o client
wait
whylate lab down --name kept
