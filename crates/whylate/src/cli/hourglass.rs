//! `whylate hourglass`.

use clap::Args;

/// What clap does not read: the paper's options, and ours beside them.
const OPTIONS: &str = "\
Options of the paper:
  -n N          Number of threads: the only mandatory option
  -d TIME       How long to run [10s]
  -t N, -a      Options behind it are for thread N, or for all
  -w WORKLOAD   What it does: PERIODIC 3ms 8ms, CPU ... (threads --list)
  -p PRIORITY   RTHIGH, RTMED, RTLOW ... (threads --list)
  -i TIMER      Its timer: HR ... (threads --list)
  -rh, -rs C T  Hard or soft reservation: C in each T
  -s, -f TIME   When it starts, and finishes
  -e N, -c      Most records of its trace [300000]; the trace in cycles, too
Options of whylate:
  --raw         Print the lines of the paper's program, not a report
  --cpus LIST   CPUs of the threads [one for all]
  -o DIR        Run directory [whylate-DATE-TIME]
  --seed N, --threshold paper|auto|TIME
";

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
/// Example: whylate hourglass -n 1 -t 0 -w PERIODIC 3ms 8ms
///
/// Example: whylate hourglass --raw -n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w
/// PERIODIC 17ms 33ms -i HR
#[derive(Debug, Clone, Args)]
#[command(after_help = OPTIONS)]
pub(crate) struct Hourglass {
    /// Options of Hourglass, listed below
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0.., value_name = "OPTIONS")]
    pub(crate) words: Vec<String>,
}
