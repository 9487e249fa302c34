# A forwarder that has a CPU for itself, with a client and a reflector at its two ends.
whylate lab up --name kept --kind open
whylate forward to-client to-server --bed kept --cpus 0 --duration 2s -o forward &
sleep 1
whylate rtt --bed kept --wait block --cpus 1 --reflector-cpus 1 --rate 1kpps --duration 300ms --warmup 100ms \
    --no-trace --seed 1 -o client
wait
whylate lab down --name kept
