# A reflector that is stopped nine times for 10 ms.
whylate rtt --rate 2kpps --duration 1s --warmup 200ms --seed 1 -o slow & client=$!
sleep 0.6
reflector=$(pgrep -P "$client" | head -1)
for _ in 1 2 3 4 5 6 7 8 9; do
    kill -STOP "$reflector"; sleep 0.01; kill -CONT "$reflector"; sleep 0.06
done
wait
