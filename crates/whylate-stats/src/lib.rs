//! Histograms, quantiles with intervals, tests and bootstrap.
