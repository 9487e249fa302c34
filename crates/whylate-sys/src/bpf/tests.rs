//! Programs that the kernel takes and refuses, and maps.

use super::*;
use crate::tests::{skip, without};

/// `r0 = 2; exit`: lets everything pass.
const PASS: [Instruction; 2] = [
    Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 2 },
    Instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 },
];

#[test]
fn a_program_is_loaded_tried_and_found_again_by_its_number() {
    let program = match load_xdp(c"whylate_test", c"MIT", &PASS) {
        Ok(program) => program,
        Err(refusal) => return skip(&refusal),
    };
    let info = program_info(&program).unwrap();
    assert_eq!(info.name, "whylate_test");
    let frame: Vec<u8> = (0..60).collect();
    let tried = try_on(&program, &frame).unwrap();
    assert_eq!(tried, Tried { returned: 2, frame });
    match program_by_id(info.id) {
        Ok(found) => assert_eq!(program_info(found).unwrap(), info),
        Err(refusal) => skip(&refusal),
    }
}

#[test]
fn what_the_verifier_says_is_the_reason() {
    if let Err(refusal) = load_xdp(c"whylate_test", c"MIT", &PASS) {
        return skip(&refusal);
    }
    let refusal = load_xdp(c"whylate_test", c"MIT", &PASS[1..]).unwrap_err().to_string();
    assert!(refusal.contains("whylate_test") && refusal.contains("R0 !read_ok"), "{refusal}");
    let long = vec![PASS[0]; MOST_INSTRUCTIONS + 1];
    let refusal = load_xdp(c"whylate_test", c"MIT", &long).unwrap_err().to_string();
    assert!(refusal.contains("4097 instructions"), "{refusal}");
}

#[test]
fn without_the_capability_it_is_named() {
    // An emulator of the processor has none of these calls, with whatever capability.
    if let Err(refusal) = load_xdp(c"whylate_test", c"MIT", &PASS)
        && !refusal.to_string().contains("CAP_BPF")
    {
        return skip(&refusal);
    }
    without(Cap::SysAdmin, || {
        without(Cap::Bpf, || {
            let refusal = load_xdp(c"whylate_test", c"MIT", &PASS).unwrap_err();
            assert!(refusal.to_string().contains("CAP_BPF"), "{refusal}");
        });
    });
}

#[test]
fn counters_that_nothing_counts_are_empty_and_no_queue_is_given_beyond_the_last() {
    match CounterMap::new(c"whylate_test", 3) {
        Ok(map) => assert_eq!(map.read().unwrap(), vec![Vec::<u64>::new(); 3]),
        Err(refusal) => return skip(&refusal),
    }
    let sockets = match SocketMap::new(c"whylate_test", 2) {
        Ok(sockets) => sockets,
        Err(refusal) => return skip(&refusal),
    };
    let file = std::fs::File::open("/dev/null").unwrap();
    let refusal = sockets.set(2, file.as_fd()).unwrap_err();
    assert!(refusal.to_string().contains("no such queue"), "{refusal}");
    assert!(sockets.set(1, file.as_fd()).is_err(), "a file is no socket");
}

#[test]
fn the_end_of_a_log_begins_at_a_line() {
    assert_eq!(last_words(" short \n"), "short");
    let long = format!("{}\nlast line\n", "x".repeat(LOG_SHOWN));
    assert_eq!(last_words(&long), "last line");
    let unbroken = "\u{e9}".repeat(LOG_SHOWN);
    assert_eq!(last_words(&unbroken), unbroken);
}
