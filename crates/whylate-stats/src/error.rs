//! What can go wrong: only reading a histogram that somebody else wrote.

/// A stored histogram that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatsError {
    /// The bytes end before the header or the payload does.
    #[error(
        "cannot read the histogram: {have} bytes where {need} are needed; the file was cut short"
    )]
    Truncated {
        /// Bytes there are.
        have: usize,
        /// Bytes there should be.
        need: usize,
    },
    /// Not an uncompressed V2 histogram.
    #[error(
        "cannot read the histogram: it begins with {cookie:#010x}, not with the mark of an \
         uncompressed HdrHistogram V2 ({expected:#010x})"
    )]
    NotV2 {
        /// What it begins with.
        cookie: u32,
        /// What it should begin with.
        expected: u32,
    },
    /// A V2 histogram of another range or precision: its bins mean something else.
    #[error(
        "cannot read the histogram: its bins are for {low} to {high} with {digits} digits; \
         whylate's are for 1 to 3600000000000 ns with 3"
    )]
    OtherLayout {
        /// Lowest discernible value.
        low: u64,
        /// Highest trackable value.
        high: u64,
        /// Significant digits.
        digits: u32,
    },
    /// Counts beyond the last bin, or bytes after the last count.
    #[error("cannot read the histogram: its payload runs past the last of {bins} bins")]
    TooManyBins {
        /// Bins of the layout.
        bins: usize,
    },
    /// A count, or the sum of counts, that no measurement can have made.
    #[error("cannot read the histogram: more than 2^63-1 samples in bin {bin}")]
    CountOverflow {
        /// The bin.
        bin: usize,
    },
    /// Not base64.
    #[error("cannot read the histogram: not base64 text ({reason})")]
    NotBase64 {
        /// What the decoder says.
        reason: String,
    },
    /// Exact values that do not belong to these bins.
    #[error("exact {what} {value} does not belong to this histogram, which allows {low} to {high}")]
    ExactValueDisagrees {
        /// `min`, `max` or `sum`.
        what: &'static str,
        /// The value offered.
        value: u128,
        /// Lowest possible.
        low: u128,
        /// Highest possible.
        high: u128,
    },
}
