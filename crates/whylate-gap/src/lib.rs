//! The gap loop, its rings and drains, and the noise injector.
