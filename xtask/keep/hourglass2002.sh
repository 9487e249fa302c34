# The experiments of a paper that take least.
whylate paper hourglass2002 --quick --only 5.5 --cpus 1 --seed 1 -o hourglass2002
