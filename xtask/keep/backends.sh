# The same requests over three backends, in turns.
whylate lab up --name kept
whylate rtt --bed kept --compare-backends udp:spin,udp:block,packet:spin --rounds 4 --rate 2kpps \
    --duration 1600ms --warmup 100ms --seed 1 -o backends
whylate lab down --name kept
