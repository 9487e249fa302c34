//! Holds nothing: the tests are in `main.rs`.
