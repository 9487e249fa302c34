#!/usr/bin/env python3
"""Makes the check vectors beside it; every number comes from SciPy or from the plain definition.

    pip install scipy numpy mpmath && python3 make_vectors.py

Deterministic: running it again with the SciPy named in the files gives the same files.
tsc_user.csv and tsc_kernel.csv are the tables of the lecture and are not made here.
"""

import math
import pathlib

import mpmath
import numpy
import scipy
from scipy import special, stats

HERE = pathlib.Path(__file__).parent
TAIL = 0.025


def write(name, columns, rows):
    with open(HERE / name, "w", encoding="ascii") as out:
        out.write(f"# made by make_vectors.py with scipy {scipy.__version__}, "
                  f"numpy {numpy.__version__}, mpmath {mpmath.__version__}\n{columns}\n")
        for row in rows:
            out.write(",".join(text(cell) for cell in row) + "\n")


def text(cell):
    if cell is None:
        return ""
    return repr(float(cell)) if isinstance(cell, (float, numpy.floating)) else str(cell)


# --- order statistics -----------------------------------------------------------------------------

def ranks(n, p):
    """l = max{i : P(Bin <= i-1) <= 0.025}, u = min{i : P(Bin <= i-1) >= 0.975}, from 1."""
    bin_ = stats.binom(n, p)
    low = int(bin_.ppf(TAIL))  # smallest k with cdf(k) >= 0.025; then step to the definition
    while low >= 0 and bin_.cdf(low) > TAIL:
        low -= 1
    while bin_.cdf(low + 1) <= TAIL:
        low += 1
    low += 1  # i - 1 = low
    high = int(bin_.isf(TAIL))
    while high > 0 and bin_.sf(high - 1) <= TAIL:
        high -= 1
    while bin_.sf(high) > TAIL:
        high += 1
    high += 1
    return (low if low >= 1 else None), (high if high <= n else None)


def brute_ranks(n, p):
    """The definition word for word."""
    cdf = stats.binom.cdf(numpy.arange(-1, n + 1), n, p)  # cdf[i] = P(Bin <= i - 1)
    low = max(i for i in range(n + 2) if cdf[i] <= TAIL)
    high = min(i for i in range(n + 2) if cdf[i] >= 1 - TAIL)
    return (low if low >= 1 else None), (high if high <= n else None)


def order_statistics():
    fractions = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999]
    sizes = [1, 2, 5, 6, 7, 10, 29, 36, 37, 100, 367, 368, 369, 1000, 3687, 3688, 10_000, 36_886,
             36_887, 100_000, 368_886, 368_887, 1_000_000, 3_688_877, 3_688_878, 10_000_000,
             123_456_789, 1_000_000_000, 10_000_000_000]
    rows = []
    for n in sizes:
        for p in fractions + [0.05, 0.25, 0.37, 0.75, 0.95]:
            found = ranks(n, p)
            if n <= 40_000:
                assert found == brute_ranks(n, p), (n, p)
            rows.append((n, p, *found))
    write("ranks.csv", "n,p,low,high", rows)


def smallest():
    """By bisection: once a sample supports both ends, so does every larger one."""
    rows = []
    for p in [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999]:
        low, high = 0, 1
        while None in ranks(high, p):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if None in ranks(middle, p) else (low, middle)
        rows.append((p, high))
    write("smallest_n.csv", "p,n", rows)


# --- special functions ----------------------------------------------------------------------------

def beta():
    rows = []
    for a, b in [(0.5, 0.5), (1, 1), (1, 1e6), (2.5, 3), (10, 10), (3, 500), (500, 3), (200, 200),
                 (999, 1e5), (1001, 1e5), (1500, 1200), (1e4, 1e4), (1e4, 1e9), (1e6, 1e3),
                 (5e6, 5e6), (1e3 + 0.5, 1e10), (5e9, 5e9), (1e7, 1e10)]:
        mean = a / (a + b)
        spread = math.sqrt(mean * (1 - mean) / (a + b + 1))
        for z in [-30, -8, -3, -1.96, -1, -0.1, 0, 0.1, 1, 1.96, 3, 8, 30]:
            x = mean + z * spread
            if 0 < x < 1:
                rows.append((a, b, x, special.betainc(a, b, x), special.betaincc(a, b, x)))
    write("beta.csv", "a,b,x,lower,upper", rows)


def gamma_exactly(a, x):
    """P(a, x) and Q(a, x) by the series of DLMF 8.11.4 in 300 digits."""
    with mpmath.workdps(300):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        term = total = mpmath.mpf(1)
        k = 0
        while term > total * mpmath.mpf(10) ** -250:
            k += 1
            term *= x / (a + k)
            total += term
        lower = total * mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1))
        return float(lower), float(1 - lower)


def gamma():
    """From SciPy, except its far tails for large a, which have no digit right (P(1e8, 1e8 - 8e4) is
    19 % off in 1.17.1): those by the series in many digits, as long as that ends."""
    rows = []
    for a in [0.5, 1, 1.5, 3, 4.5, 17, 100, 999, 1001, 1500, 1e4, 1e6, 1e8, 1e10]:
        for z in [-30, -8, -3, -1.96, -1, -0.1, 0, 0.1, 1, 1.96, 3, 8, 30]:
            x = a + z * math.sqrt(a)
            if x <= 0 or (abs(z) > 3 and a > 1e6):
                continue
            lower, upper = special.gammainc(a, x), special.gammaincc(a, x)
            if abs(z) > 3 and a >= 1e4:
                lower, upper = gamma_exactly(a, x)
            rows.append((a, x, lower, upper))
    write("gamma.csv", "a,x,lower,upper", rows)


def tails():
    rows = [("normal", z, 0, 2 * stats.norm.sf(z))
            for z in [0.0, 1e-6, 0.1, 0.6745, 1.0, 1.96, 2.5758, 5.0, 10.0, 30.0]]
    rows += [("chi2", x, df, stats.chi2.sf(x, df))
             for df in [1, 2, 3, 9, 10, 50] for x in [0.01, 0.5, 1.0, 3.84, 9.0, 16.919, 60.0, 400.0]]
    write("tails.csv", "distribution,statistic,degrees,p", rows)


# --- rates ----------------------------------------------------------------------------------------

def rates():
    rows = []
    for count in [0, 1, 2, 3, 5, 10, 23, 100, 1009, 10_000, 1_000_000, 123_456_789]:
        for time in [0.5, 1.0, 60.0, 3600.0]:
            if count == 0:
                low, high = 0.0, stats.chi2.isf(0.05, 2) / 2 / time
            else:
                low = stats.chi2.ppf(TAIL, 2 * count) / 2 / time
                high = stats.chi2.isf(TAIL, 2 * count + 2) / 2 / time
            rows.append((count, time, low, high))
    write("poisson.csv", "count,time,low,high", rows)

    rows = []
    for a, ta, b, tb in [(0, 1, 1, 1), (0, 10, 5, 10), (3, 60, 12, 60), (10, 1, 10, 2),
                         (100, 60, 140, 60), (1000, 60, 1000, 60), (1, 3600, 30, 60),
                         (5000, 10, 5300, 10), (1_000_000, 100, 1_003_000, 100), (7, 1, 70, 10)]:
        share = ta / (ta + tb)
        n = a + b
        p = min(1.0, 2 * min(stats.binom.cdf(a, n, share), stats.binom.sf(a - 1, n, share)))
        # Where both sides have the same share, doubling is SciPy's own two-sided test.
        if share == 0.5:
            assert math.isclose(p, stats.binomtest(a, n, share).pvalue, rel_tol=1e-9)
        rows.append((a, float(ta), b, float(tb), p))
    write("rates_differ.csv", "count_a,time_a,count_b,time_b,p", rows)


# --- stationarity ---------------------------------------------------------------------------------

def kruskal(rng):
    cases = [[[1, 2, 3], [4, 5, 6]], [[1, 1, 2], [1, 2, 2], [2, 3, 3]],
             [[2.9, 3.0, 2.5, 2.6, 3.2], [3.8, 2.7, 4.0, 2.4], [2.8, 3.4, 3.7, 2.2, 2.0]]]
    for shift in [0, 1, 5]:
        cases.append([list(map(float, rng.integers(0, 40, 60) + shift * k)) for k in range(10)])
        cases.append([[round(float(v), 6) for v in rng.exponential(50, 20 + 3 * k) + shift * k]
                      for k in range(4)])
    rows = []
    for groups in cases:
        h, p = stats.kruskal(*groups)
        total = sum(map(len, groups))
        cell = ";".join(" ".join(repr(float(v)) for v in group) for group in groups)
        rows.append((cell, h, p, h / (total - 1)))
    write("kruskal_wallis.csv", "groups,h,p,epsilon_squared", rows)


def exact_two_sided(n, s):
    """P(|S| >= |s|) over all orders of n distinct values, counted in whole numbers."""
    orders = [1]
    for m in range(2, n + 1):  # the m-th value adds 0..m-1 falling pairs
        longer = [0] * (len(orders) + m - 1)
        for k, number in enumerate(orders):
            for more in range(m):
                longer[k + more] += number
        orders = longer
    pairs = n * (n - 1) // 2
    far = sum(number for k, number in enumerate(orders) if abs(pairs - 2 * k) >= abs(s))
    return far / math.factorial(n)


def mann_kendall(series):
    """Own reference: the definition, the exact distribution without ties, else the normal one."""
    n = len(series)
    s = sum(int(numpy.sign(series[j] - series[i])) for i in range(n) for j in range(i + 1, n))
    _, ties = numpy.unique(series, return_counts=True)
    if len(ties) == n and n <= 100:
        return s, exact_two_sided(n, s)
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    z = max(abs(s) - 1, 0) / math.sqrt(variance)
    return s, 2 * stats.norm.sf(z)


def trends(rng):
    cases = [[1, 2], [2, 1, 3], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [1, 3, 2, 5, 4, 7, 6, 9, 8, 10],
             [1, 1, 2, 2, 3, 3, 2, 4, 4, 5], [7, 7, 7, 7, 7, 7, 7, 7, 7, 8]]
    for n in [4, 10, 11, 25, 60, 100, 101, 150]:
        for drift in [0.0, 0.03]:
            cases.append([round(float(v), 9) for v in rng.normal(0, 1, n) + drift * numpy.arange(n)])
            cases.append(list(map(float, rng.integers(0, 8, n) + (drift * numpy.arange(n)).astype(int))))
    rows = []
    for series in cases:
        series = [float(v) for v in series]
        s, p = mann_kendall(series)
        tau, exact = stats.kendalltau(range(len(series)), series,
                                      method="exact" if len(set(series)) == len(series) else "auto")
        if len(set(series)) == len(series) and len(series) <= 100:
            assert math.isclose(p, exact, rel_tol=1e-9), (p, exact)
        rows.append((" ".join(map(repr, series)), s, p, tau))
    write("mann_kendall.csv", "series,s,p,tau", rows)


# --- two samples ----------------------------------------------------------------------------------

def mann_whitney(rng):
    """Binned samples: values with counts, as the product has them."""
    cases = [([1, 2, 3], [4, 5, 6]), ([1, 1, 2], [1, 2, 2]), ([5], [7]), ([3, 3, 3], [3, 3, 3, 3]),
             ([9] * 40 + [10] * 3, [9] * 30 + [10] * 20)]
    for shift in [0, 1, 4]:
        cases.append((list(rng.integers(0, 30, 80)), list(rng.integers(0, 30, 50) + shift)))
        cases.append((list(rng.exponential(500, 200).astype(int)),
                      list(rng.exponential(500 + 100 * shift, 300).astype(int))))
    rows = []
    for first, second in cases:
        first, second = [[int(v) for v in side] for side in (first, second)]
        # SciPy's statistic is that of its first argument: pairs in which that one is larger.
        found = stats.mannwhitneyu(second, first, alternative="two-sided", method="asymptotic",
                                   use_continuity=True)
        p = 1.0 if math.isnan(found.pvalue) else found.pvalue
        cell = [" ".join(f"{v}x{side.count(v)}" for v in sorted(set(side)))
                for side in (first, second)]
        rows.append((*cell, found.statistic, p))
    write("mann_whitney.csv", "first,second,u,p", rows)


def student():
    rows = [(df, stats.t.ppf(0.975, df), t, 2 * stats.t.sf(t, df))
            for df in [1, 2, 3.7, 4, 9, 30, 1e6] for t in [0.1, 1.0, 2.5, 12.0]]
    write("student.csv", "degrees,critical,t,p", rows)


def main():
    order_statistics()
    smallest()
    beta()
    gamma()
    tails()
    rates()
    rng = numpy.random.default_rng(20170330)
    kruskal(rng)
    trends(rng)
    mann_whitney(rng)
    student()


if __name__ == "__main__":
    main()
