//! Instructions of eBPF, put together by name.
//!
//! The kernel's instruction set
//! ([`instruction-set.rst`](https://docs.kernel.org/bpf/standardization/instruction-set.html)) as far
//! as programs on packets need it: sums and shifts of 64 and 32 bits, memory by size, jumps to labels,
//! calls of helpers, maps. What cannot be encoded (a jump too far, a label that leads nowhere) is
//! refused when the program is finished. Whether a program is safe is the kernel's to say.
//!
//! Crates exist that encode single instructions (`bpf-ins`, and `insn_builder` of the interpreter
//! `rbpf`), and one that loads what a compiler left in an object file (`aya`). None has labels, 32-bit
//! jumps and maps together, and each leaves the half below to be written all the same; a table of
//! codes that the kernel checks at every load is smaller than what it would replace.

use std::os::fd::{AsFd, AsRawFd};

use whylate_sys::bpf::Instruction;

/// A register. R0 is what a call or the program returns, R1 to R5 are arguments and lost in a call, R6
/// to R9 are kept, R10 points behind the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the numbers are their names")]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// How much of the registers an instruction works with; 32 bits leave the upper ones zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// All of them.
    W64,
    /// The lower ones.
    W32,
}

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    /// One.
    B1 = 0x10,
    /// Two.
    B2 = 0x08,
    /// Four.
    B4 = 0x00,
    /// Eight.
    B8 = 0x18,
}

/// What is done with two operands; the result takes the place of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Alu {
    /// Sum.
    Add = 0x00,
    /// Difference.
    Sub = 0x10,
    /// Bits of either.
    Or = 0x40,
    /// Bits of both.
    And = 0x50,
    /// Shift to the left.
    Lsh = 0x60,
    /// Shift to the right, zeros from the left.
    Rsh = 0x70,
    /// Bits of one of them.
    Xor = 0xa0,
    /// The second.
    Mov = 0xb0,
}

/// What two operands are asked, as numbers without a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Test {
    /// Equal?
    Eq = 0x10,
    /// Is the first greater?
    Gt = 0x20,
    /// Is the first greater, or equal?
    Ge = 0x30,
    /// Have they a bit in common?
    Set = 0x40,
    /// Not equal?
    Ne = 0x50,
    /// Is the first less?
    Lt = 0xa0,
    /// Is the first less, or equal?
    Le = 0xb0,
}

/// A register, or a constant, whose sign is extended to 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A constant.
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(register: Reg) -> Self {
        Self::Reg(register)
    }
}

impl From<i32> for Operand {
    fn from(constant: i32) -> Self {
        Self::Imm(constant)
    }
}

/// A place in a program to which jumps lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// Why instructions are no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AsmError {
    /// Jumps lead to a place that is nowhere.
    #[error("instruction {from} jumps to a label that stands nowhere")]
    LabelNowhere {
        /// The jump.
        from: usize,
    },
    /// A label stands at two places.
    #[error("a label stands at instruction {first} and again at {second}")]
    LabelTwice {
        /// The first place.
        first: usize,
        /// The second one.
        second: usize,
    },
    /// The distance does not fit into 16 bits.
    #[error("instruction {from} cannot jump as far as instruction {to}")]
    TooFar {
        /// The jump.
        from: usize,
        /// Where it leads.
        to: usize,
    },
}

/// Puts a program together.
#[derive(Debug, Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    /// Jumps and where they lead.
    jumps: Vec<(usize, Label)>,
    /// The first thing that went wrong.
    fault: Option<AsmError>,
}

const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const ALU32: u8 = 0x04;
const JMP64: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
/// The second operand is a register.
const X: u8 = 0x08;
/// A load or store of memory.
const MEM: u8 = 0x60;
/// A constant of 64 bits, in two instructions.
const LOAD_64: u8 = 0x18;
/// Such a constant is a map, by its descriptor.
const MAP_DESCRIPTOR: u8 = 1;
const ALWAYS: u8 = 0x00;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// What is called is a function of the kernel, by the number of its type (`BPF_PSEUDO_KFUNC_CALL`).
const OF_KERNEL: u8 = 2;
/// To the order of bytes of the network.
const TO_BIG_ENDIAN: u8 = ALU32 | X | 0xd0;

impl Assembler {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A label that stands nowhere yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here.
    pub fn bind(&mut self, label: Label) {
        let second = self.instructions.len();
        if let Some(first) = self.labels[label.0].replace(second) {
            self.fault.get_or_insert(AsmError::LabelTwice { first, second });
        }
    }

    /// `to = to OP operand`.
    pub fn alu(&mut self, width: Width, op: Alu, to: Reg, operand: impl Into<Operand>) {
        let class = if width == Width::W64 { ALU64 } else { ALU32 };
        self.push_with(class | op as u8, to, operand.into(), 0);
    }

    /// `to = operand`, of 64 bits.
    pub fn mov(&mut self, to: Reg, operand: impl Into<Operand>) {
        self.alu(Width::W64, Alu::Mov, to, operand);
    }

    /// `to += operand`, of 64 bits.
    pub fn add(&mut self, to: Reg, operand: impl Into<Operand>) {
        self.alu(Width::W64, Alu::Add, to, operand);
    }

    /// Turns the lower 16 bits of a register from the order of the network to that of this host; the
    /// others become zero.
    pub fn host_order_16(&mut self, register: Reg) {
        self.push(TO_BIG_ENDIAN, register, Reg::R0, 0, 16);
    }

    /// `to = *(from + offset)`, the upper bits zero.
    pub fn load(&mut self, size: Size, to: Reg, from: Reg, offset: i16) {
        self.push(LDX | MEM | size as u8, to, from, offset, 0);
    }

    /// `*(to + offset) = operand`.
    pub fn store(&mut self, size: Size, to: Reg, offset: i16, operand: impl Into<Operand>) {
        match operand.into() {
            Operand::Reg(from) => self.push(STX | MEM | size as u8, to, from, offset, 0),
            Operand::Imm(constant) => {
                self.push(ST | MEM | size as u8, to, Reg::R0, offset, constant);
            }
        }
    }

    /// `to = map`, as helpers take it. The map must be open when the program is loaded.
    pub fn load_map(&mut self, to: Reg, map: impl AsFd) {
        let descriptor = map.as_fd().as_raw_fd();
        self.push_raw(LOAD_64, to as u8, MAP_DESCRIPTOR, 0, descriptor);
        self.push_raw(0, 0, 0, 0, 0);
    }

    /// Goes to the label.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JMP64 | ALWAYS, Reg::R0, Reg::R0, 0, 0);
    }

    /// Goes to the label if the answer is yes.
    pub fn jump_if(
        &mut self,
        width: Width,
        test: Test,
        register: Reg,
        operand: impl Into<Operand>,
        to: Label,
    ) {
        let class = if width == Width::W64 { JMP64 } else { JMP32 };
        self.jumps.push((self.instructions.len(), to));
        self.push_with(class | test as u8, register, operand.into(), 0);
    }

    /// Calls the helper of this number of `enum bpf_func_id`.
    pub fn call(&mut self, helper: i32) {
        self.push(JMP64 | CALL, Reg::R0, Reg::R0, 0, helper);
    }

    /// Calls the function of the kernel whose type has this number.
    pub fn call_kernel(&mut self, function: i32) {
        self.push_raw(JMP64 | CALL, 0, OF_KERNEL, 0, function);
    }

    /// Ends the program with R0.
    pub fn exit(&mut self) {
        self.push(JMP64 | EXIT, Reg::R0, Reg::R0, 0, 0);
    }

    /// The program, jumps resolved.
    pub fn finish(mut self) -> Result<Vec<Instruction>, AsmError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        for (from, label) in self.jumps {
            let to = self.labels[label.0].ok_or(AsmError::LabelNowhere { from })?;
            // A jump counts from the instruction behind it.
            let distance = to as i64 - (from as i64 + 1);
            let too_far = |_| AsmError::TooFar { from, to };
            self.instructions[from].offset = i16::try_from(distance).map_err(too_far)?;
        }
        Ok(self.instructions)
    }

    fn push_with(&mut self, code: u8, to: Reg, operand: Operand, offset: i16) {
        match operand {
            Operand::Reg(from) => self.push(code | X, to, from, offset, 0),
            Operand::Imm(constant) => self.push(code, to, Reg::R0, offset, constant),
        }
    }

    fn push(&mut self, code: u8, to: Reg, from: Reg, offset: i16, immediate: i32) {
        self.push_raw(code, to as u8, from as u8, offset, immediate);
    }

    fn push_raw(&mut self, code: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        // Two fields of four bits each, of which the compiler of the kernel puts the first one into the
        // half that comes first in its order.
        let registers =
            if cfg!(target_endian = "little") { (from << 4) | to } else { (to << 4) | from };
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(build: impl FnOnce(&mut Assembler)) -> Vec<Instruction> {
        let mut asm = Assembler::new();
        build(&mut asm);
        asm.finish().unwrap()
    }

    fn one(build: impl FnOnce(&mut Assembler)) -> (u8, u8, i16, i32) {
        let made = made(build);
        assert_eq!(made.len(), 1);
        let Instruction { code, registers, offset, immediate } = made[0];
        (code, registers, offset, immediate)
    }

    /// The values are those of the tables in the kernel's document, worked out by hand.
    #[test]
    fn arithmetic_has_the_documented_codes() {
        use Alu::{Add, And, Lsh, Mov, Or, Rsh, Sub, Xor};
        use Reg::{R1, R9};
        use Width::{W32, W64};
        let cases = [
            (W64, Add, 0x07, 0x0f),
            (W64, Sub, 0x17, 0x1f),
            (W64, Or, 0x47, 0x4f),
            (W64, And, 0x57, 0x5f),
            (W64, Lsh, 0x67, 0x6f),
            (W64, Rsh, 0x77, 0x7f),
            (W64, Xor, 0xa7, 0xaf),
            (W64, Mov, 0xb7, 0xbf),
            (W32, Add, 0x04, 0x0c),
            (W32, Sub, 0x14, 0x1c),
            (W32, Or, 0x44, 0x4c),
            (W32, And, 0x54, 0x5c),
            (W32, Lsh, 0x64, 0x6c),
            (W32, Rsh, 0x74, 0x7c),
            (W32, Xor, 0xa4, 0xac),
            (W32, Mov, 0xb4, 0xbc),
        ];
        for (width, op, constant, register) in cases {
            let got = one(|asm| asm.alu(width, op, R1, -7));
            assert_eq!(got, (constant, 0x01, 0, -7), "{width:?} {op:?}");
            let got = one(|asm| asm.alu(width, op, R1, R9));
            assert_eq!(got, (register, 0x91, 0, 0), "{width:?} {op:?}");
        }
        assert_eq!(one(|asm| asm.host_order_16(R9)), (0xdc, 0x09, 0, 16));
    }

    #[test]
    fn memory_has_the_documented_codes() {
        use Reg::{R2, R10};
        use Size::{B1, B2, B4, B8};
        let cases = [
            (B1, 0x71, 0x73, 0x72),
            (B2, 0x69, 0x6b, 0x6a),
            (B4, 0x61, 0x63, 0x62),
            (B8, 0x79, 0x7b, 0x7a),
        ];
        for (size, load, store, constant) in cases {
            assert_eq!(one(|asm| asm.load(size, R2, R10, -8)), (load, 0xa2, -8, 0));
            assert_eq!(one(|asm| asm.store(size, R10, -8, R2)), (store, 0x2a, -8, 0));
            assert_eq!(one(|asm| asm.store(size, R10, -8, 5)), (constant, 0x0a, -8, 5));
        }
    }

    #[test]
    fn jumps_calls_and_exit_have_the_documented_codes() {
        use Reg::{R3, R4};
        use Test::{Eq, Ge, Gt, Le, Lt, Ne, Set};
        let cases =
            [(Eq, 0x10), (Gt, 0x20), (Ge, 0x30), (Set, 0x40), (Ne, 0x50), (Lt, 0xa0), (Le, 0xb0)];
        for (test, code) in cases {
            for (width, class) in [(Width::W64, 0x05), (Width::W32, 0x06)] {
                let jump = |operand: Operand| {
                    one(|asm| {
                        let next = asm.label();
                        asm.jump_if(width, test, R3, operand, next);
                        asm.bind(next);
                    })
                };
                assert_eq!(jump(9.into()), (class | code, 0x03, 0, 9), "{test:?} {width:?}");
                assert_eq!(jump(R4.into()), (class | code | 8, 0x43, 0, 0), "{test:?} {width:?}");
            }
        }
        assert_eq!(one(|asm| asm.call(51)), (0x85, 0, 0, 51));
        assert_eq!(one(|asm| asm.call_kernel(66_161)), (0x85, 0x20, 0, 66_161));
        assert_eq!(one(Assembler::exit), (0x95, 0, 0, 0));
    }

    #[test]
    fn a_map_takes_two_instructions_of_which_the_second_is_empty() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let got = made(|asm| asm.load_map(Reg::R1, &file));
        let first =
            Instruction { code: 0x18, registers: 0x11, offset: 0, immediate: file.as_raw_fd() };
        let second = Instruction { code: 0, registers: 0, offset: 0, immediate: 0 };
        assert_eq!(got, [first, second]);
    }

    #[test]
    fn labels_lead_forward_and_back_and_count_from_behind_the_jump() {
        let program = made(|asm| {
            let (start, end) = (asm.label(), asm.label());
            asm.bind(start);
            asm.jump(end);
            asm.mov(Reg::R0, 1);
            asm.jump(start);
            asm.bind(end);
            asm.exit();
        });
        let offsets: Vec<i16> = program.iter().map(|one| one.offset).collect();
        assert_eq!(offsets, [2, 0, -3, 0]);
        assert_eq!(program[0].code, 0x05);
    }

    #[test]
    fn what_cannot_be_encoded_is_refused_with_its_place() {
        let mut asm = Assembler::new();
        asm.exit();
        let nowhere = asm.label();
        asm.jump(nowhere);
        assert_eq!(asm.finish(), Err(AsmError::LabelNowhere { from: 1 }));

        let mut asm = Assembler::new();
        let twice = asm.label();
        asm.bind(twice);
        asm.exit();
        asm.bind(twice);
        assert_eq!(asm.finish(), Err(AsmError::LabelTwice { first: 0, second: 1 }));

        for (between, fits) in [(32_767, true), (32_768, false)] {
            let mut asm = Assembler::new();
            let end = asm.label();
            asm.jump(end);
            for _ in 0..between {
                asm.exit();
            }
            asm.bind(end);
            let made = asm.finish();
            if fits {
                assert_eq!(made.unwrap()[0].offset, i16::MAX);
            } else {
                assert_eq!(made, Err(AsmError::TooFar { from: 0, to: 32_769 }));
            }
        }
    }
}
