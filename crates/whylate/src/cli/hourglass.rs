//! `whylate hourglass`.

use clap::Args;

/// Run a command line of Hourglass 0.5 (2002)
///
/// Synthetic threads record when they have the CPU. The options are those of the paper "Inferring
/// Scheduling Behavior with Hourglass" (2002), its appendix A, and mean what they mean there; -p
/// has the paper's eight names, -w its workloads, -i its timers. All threads share one CPU unless
/// --cpus says otherwise. Nothing is printed before the run has ended; the run directory holds what
/// the paper did not have: causes, intervals, the kernel's view. Times have a unit: 3m, 1.5s,
/// 1020ms, 87.0us.
///
/// A report is printed, and hourglass.txt in the run directory has the lines that the paper's program
/// printed; --raw prints them instead.
///
/// Beside the paper's options: --raw, --cpus LIST, -o DIR, --seed N, --threshold paper|auto|TIME.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Example:\n  whylate hourglass --raw -n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR \
                        -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i HR\n\n  thread 0: missed 0 deadlines, \
                        hit 1250\n  thread 1: missed 0 deadlines, hit 303"
)]
pub(crate) struct Hourglass {
    /// Options of Hourglass 0.5
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0.., value_name = "OPTIONS")]
    pub(crate) words: Vec<String>,
}
