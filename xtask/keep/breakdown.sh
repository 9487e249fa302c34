# Requests taken apart by what both ends and the kernel's timestamps tell, without the trace.
whylate rtt --wait block --breakdown=stamps,told --rate 1kpps --duration 300ms --warmup 100ms --seed 1 -o breakdown
