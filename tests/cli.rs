//! What the program says about itself, and how it refuses a wrong word.

use crate::program;

#[test]
fn help_and_usage_errors_read_as_recorded() {
    trycmd::TestCases::new()
        .register_bin("whylate", program::path())
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C")
        .case(program::file("cli/*.trycmd"));
}
