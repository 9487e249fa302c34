//! Looking at recorded runs: terminal report and exporters.
