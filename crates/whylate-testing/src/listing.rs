//! What a program was compiled to for x86-64, as objdump lists it, function by function.
//!
//! What a function calls by its name is not followed: a listing tells what is done in the function itself,
//! and by what ways it leaves it. Tests of crates with features of their own have this file as well.

use std::path::Path;
use std::process::Command;

/// Instructions that read the counter, lock a line of memory or enter the kernel.
const INSTRUCTIONS: [&str; 6] = ["rdtsc", "rdtscp", "lock", "syscall", "sysenter", "int"];
/// Parts of names of functions that allocate.
const ALLOCATE: [&str; 5] = ["__rust_alloc", "__rust_realloc", "__rdl_alloc", "malloc", "<alloc::"];

/// All of a program.
pub fn of(objdump: &Path, program: &Path) -> String {
    let arguments = ["--disassemble", "--demangle", "--no-show-raw-insn"];
    let output = Command::new(objdump).args(arguments).arg(program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
}

/// Instructions of each function whose headline contains `name`.
pub fn functions<'a>(listing: &'a str, name: &str) -> impl Iterator<Item = Vec<&'a str>> {
    listing
        .split("\n\n")
        .filter(move |text| text.lines().next().is_some_and(|line| line.contains(name)))
        .map(|text| text.lines().skip(1).collect())
}

/// The instruction of a line, and what it is about.
fn instruction(line: &str) -> Option<(&str, &str)> {
    let text = line.split_once(':')?.1.trim();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Some((name, rest.trim()))
}

/// Lines that read the counter, lock, enter the kernel or allocate.
pub fn unfit<'a>(function: &[&'a str]) -> Vec<&'a str> {
    let is_unfit = |line: &&&str| {
        instruction(line).is_some_and(|(name, rest)| {
            let allocates = ALLOCATE.iter().any(|part| rest.contains(part));
            INSTRUCTIONS.contains(&name) || (leaves(name) && allocates)
        })
    };
    function.iter().filter(is_unfit).copied().collect()
}

/// Calls of what a table or a pointer in memory names, also where it was read into a register before. What
/// the loader filled in is no such table, and a jump to a place that was computed is none either: that is a
/// choice among parts of the function itself.
pub fn by_table(function: &[&str]) -> usize {
    let is_one = |at: &usize| {
        instruction(function[*at]).is_some_and(|(name, rest)| {
            let Some(through) = rest.strip_prefix('*').filter(|_| leaves(name)) else {
                return false;
            };
            if through.starts_with('%') {
                return names_a_table(&function[..*at], name, through);
            }
            through.contains('(') && !through.contains("(%rip)")
        })
    };
    (0..function.len()).filter(is_one).count()
}

/// Is what a register holds behind these lines of a table? A call of what came from elsewhere is taken for
/// one.
fn names_a_table(before: &[&str], name: &str, register: &str) -> bool {
    let written = before.iter().rev().find_map(|line| {
        let (name, rest) = instruction(line)?;
        // Without what objdump adds.
        let rest = rest.split('#').next()?.trim();
        let from = rest.strip_suffix(register)?.strip_suffix(',')?;
        Some((name, from))
    });
    match written {
        Some((written, from)) if written.starts_with("mov") => !from.contains("(%rip)"),
        _ => name.starts_with("call"),
    }
}

/// What a function consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub instructions: usize,
    /// Calls and jumps to other functions, by whatever way.
    pub calls: usize,
    /// Those by tables.
    pub by_table: usize,
    /// What no hot path may do.
    pub unfit: usize,
    /// Ways back to the caller.
    pub returns: usize,
}

impl Shape {
    pub fn of(function: &[&str]) -> Self {
        let named = |is: &dyn Fn(&str, &str) -> bool| {
            let one = |line: &&&str| instruction(line).is_some_and(|(name, rest)| is(name, rest));
            function.iter().filter(one).count()
        };
        Self {
            instructions: named(&|_, _| true),
            calls: named(&|name, _| name.starts_with("call")),
            by_table: by_table(function),
            unfit: unfit(function).len(),
            returns: named(&|name, rest| {
                name.starts_with("ret") || (name == "repz" && rest == "ret")
            }),
        }
    }
}

/// A call, or a jump that stands for one.
fn leaves(name: &str) -> bool {
    name.starts_with("call") || name == "jmp" || name == "jmpq"
}

#[test]
fn counters_locks_allocations_and_tables_are_found_in_a_listing_and_nothing_else_is() {
    const LISTING: &str = "\
0000000000001000 <planted::hot::gather>:
    1000:\tpush   %rbp
    1001:\tcall   *0x28(%rax)
    1004:\tcall   *0x5b9d(%rip)        # 6b40 <memcpy@GLIBC_2.14>
    1008:\tmov    0x5b80(%rip),%r15        # 6b48 <memcpy@GLIBC_2.14>
    100a:\tcall   *%r15
    100d:\tjmp    1000 <planted::hot::gather>

0000000000002000 <planted::hot::take_in::<u8>>:
    2000:\trdtsc
    2002:\tlock cmpxchg %rcx,(%rdx)
    2007:\tcall   3000 <__rust_alloc>
    200c:\tcall   3010 <core::alloc_free::nothing>
    2011:\tmov    0x8(%rdi),%rax

0000000000003000 <planted::hot::pass>:
    3000:\tmov    0x18(%rsi),%rbx
    3004:\txor    %eax,%eax
    3006:\tcall   *%rbx
    3008:\tadd    %rdx,%rax
    300b:\tjmp    *%rax
    300d:\tmov    0x20(%rsi),%rax
    3011:\tjmp    *%rax
    3013:\tret
";
    let found = |name| functions(LISTING, name).collect::<Vec<_>>();
    let (gather, take_in) = (found("hot::gather>:"), found("hot::take_in::<"));
    assert_eq!((gather.len(), take_in.len(), found("hot::gather::<").len()), (1, 1, 0));
    assert_eq!((unfit(&gather[0]).len(), by_table(&gather[0])), (0, 1));
    assert_eq!((unfit(&take_in[0]).len(), by_table(&take_in[0])), (3, 0));
    // One by a register, one at the end; what was computed is a part of the function.
    let pass = found("hot::pass>:");
    let expected = Shape { instructions: 8, calls: 1, by_table: 2, unfit: 0, returns: 1 };
    assert_eq!(Shape::of(&pass[0]), expected);
}
