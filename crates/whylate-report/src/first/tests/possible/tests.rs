//! Screens that cannot be: the check finds what is wrong with each.

use super::contradictions;

/// What somebody planted without looking, and what is wrong with it.
const IMPOSSIBLE: [(&str, &str); 17] = [
    (
        "Wake-up latency on CPU 1: best timer0 (p99 1 µs).\n\nlatency, µs   min   p50   p99   max\n\
         timer0       14.7  1.00  1.00  26.4\n",
        "timer0: p50 1 is below min 14.7",
    ),
    (
        "Passed on 90 of 91 frames.\n\ndirection     received  passed on\na to b              91         90\n\n\
         time in the delay line, µs   min   p50   p99  p99.9  max   n\n\
         a to b                      0.01  0.05  0.10  ≥0.08  400  90\n",
        "a to b: p99.9 0.08 is below p99 0.1",
    ),
    (
        "Passed on 90 of 91 frames.\n\ndirection     received  passed on\na to b              91         90\n\n\
         time in the delay line, µs   min   p50  max    n\na to b                      0.01  0.05  400  900\n",
        "more samples than the 90 that passed",
    ),
    (
        "In this run all 10 were met.\n\nresponse time of task, ms  predicted   p50   max  above   missed\n\
         t0                              2.00  2.12  2.14     22  0 of 10\n",
        "t0: 22 above of 10 jobs",
    ),
    (
        "Jobs took up to 138 µs longer than predicted.\n\nresponse time of task, ms  predicted   p50   max  above\n\
         t1                              2.00  2.12  5.16     28\n",
        "up to 138000 ns longer",
    ),
    (
        "No job took longer.\n\nresponse time of task, ms  predicted   p50   max  above\n\
         t1                              2.00  2.12  2.14      1\nJob 84 of t1 lost the most: 6.7 ms.\n",
        "lost by a job",
    ),
    (
        "Over 2 runs (400 ms), CPU 1 lost 52% of its time.\n\nruns    of CPU  stalls\nrun-1     30%      24\n\
         run-0     29%      24\n",
        "52 of runs of 28.5 to 30.5",
    ),
    (
        "Over 2 runs: worst 24 ms.\n\nlatency, ms    min   max\nresponse time  0.1  24.0\n\n\
         runs, ms  samples  max\nrun-1         300  720\nrun-0         300  120\n",
        "the largest value of a run is above that of their sum",
    ),
    (
        "Answered 50,000 requests from 1 client.\n\nresidence, µs   min   max    n\nall clients    0.80  4.00  300\n\n\
         client, µs   answered   max  ended\n192.0.2.1      50,000  3.90  open\n",
        "n 300 of 50000 answered",
    ),
    (
        "Answered 300 requests from 1 client.\n\nresidence, µs   min   max    n\nall clients    0.80  4.00  300\n\n\
         client, µs   answered   max  ended\n192.0.2.1         300  95.7  open\n",
        "a client waited longer than the longest of all",
    ),
    (
        "Agrees (1 of 1).\n\nagrees      paper                here          95% CI\n\
         throughput  94 Mbit/s       8.3 Gbit/s  7.6–8.9 Gbit/s\n",
        "agrees: 94 Mbit/s beside 7.6–8.9 Gbit/s",
    ),
    (
        "No: video cannot meet its deadline. The tasks need 114% of the CPU.\n\n\
         task, ms  execution  period  deadline  response  slack\n\
         audio          3.00    8.00      8.00      5.00   3.00\n\
         video          17.0    33.0      33.0      29.0   4.00\n",
        "a load of 114%, where tasks take 89.0%",
    ),
    (
        "Yes, 3 ms or more to spare (CPU load 38%).\n\ntask, ms  execution  period  deadline  response  slack\n\
         audio          3.00    8.00      8.00      2.00   3.00\n",
        "audio: response 2 below execution 3",
    ),
    (
        "2 threads received 143 ms of CPU time; they lost 21 ms in all.\n\nCPU time, ms  received  lost\n\
         0  CPU            71.5  10.0\n1  CPU            71.5  11.0\n\nlost CPU time, ms  lost  share\n\
         task a              307    81%\ntask b             72.0    19%\n",
        "ns lost",
    ),
    (
        "CPU 1 lost 22% of its time.\n\nlost CPU time, ms  lost  share  of CPU  stalls  longest\n\
         task 0 of the set  72.0   100%     22%       1     0.13\n",
        "task 0 of the set: 72 lost in 1 stalls of 0.13 at most",
    ),
    (
        "Over 2 runs (3.2 s), CPU 1 lost 50.9% of its time. Each of them lost 51%.\n\nruns    of CPU  stalls\n\
         second   50.9%     383\nfirst    50.9%     383\n",
        "51%  of the answer stands nowhere",
    ),
    (
        "Over 2 runs a switch costs 1 µs. Each run by itself has a p99 (yield) of 2 µs.\n\n\
         p50 of a switch, µs  threads  95% CI\nsched_yield             1.01    1.01\n",
        "no table has a p99",
    ),
];

#[test]
fn a_screen_that_contradicts_itself_is_found() {
    for (screen, what) in IMPOSSIBLE {
        let found = contradictions(screen);
        assert!(found.iter().any(|of| of.contains(what)), "{what}: {found:?} in\n{screen}");
    }
}

/// A part is no more than its whole, all parts are the whole, and an interval holds its number.
#[test]
fn parts_wholes_and_intervals_are_held_against_each_other() {
    let jobs = |missed: &str, share: &str, ends: &str| {
        format!(
            "{missed} of 20 deadlines were missed.\n\ndeadlines  jobs  missed  share  95% CI\n\
             audio        20  {missed}  {share}  {ends}\n"
        )
    };
    for (screen, what) in [
        (jobs("5", "25%", "9–49%"), None),
        (jobs("25", "125%", "99–149%"), Some("missed 25 of jobs 20")),
        (jobs("5", "35%", "9–49%"), Some("share 35, not 25.0")),
        (jobs("5", "25%", "30–49%"), Some("25 is not in 30–49%")),
        (jobs("6", "30%", "9–49%").replace("6 of 20", "7 of 20"), Some("7  of the answer")),
    ] {
        let found = contradictions(&screen);
        let all = match what {
            None => found.is_empty(),
            Some(what) => found.iter().any(|of| of.contains(what)),
        };
        assert!(all, "{what:?}: {found:?} in\n{screen}");
    }
    let causes = |share: &str, total: &str| {
        format!(
            "CPU 1 lost 20% of its time.\n\nlost CPU time, ms  lost  share  of CPU\n\
             timer tick         12.0    60%     12%\nsoftirqs           8.00  {share}    8.0%\n\
             total              {total}   100%     20%\n"
        )
    };
    assert_eq!(contradictions(&causes("40%", "20.0")), [""; 0]);
    let less = contradictions(&causes("30%", "20.0"));
    assert!(less.iter().any(|of| of.contains("shares add up to 90")), "{less:?}");
    let more = contradictions(&causes("40%", "15.0"));
    assert!(more.iter().any(|of| of.contains("lost adds up to 20")), "{more:?}");
}
