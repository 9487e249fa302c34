# The experiment of a paper that takes least.
whylate paper pam2017 --quick --only 4 --seed 1 -o pam2017
