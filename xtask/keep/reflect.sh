# A reflector with one client.
whylate reflect --listen 127.0.0.1:11111 --wait spin --cpus 1 --once -o reflect &
sleep 0.3
whylate rtt 127.0.0.1:11111 --cpus 0 --rate 2kpps --duration 300ms --warmup 100ms --no-trace --seed 1 \
    -o client
wait
