//! Blocks of the execution trace as rows: the layout of `blocks-0001.parquet`.

use std::io::Write;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{Columns, Group, Required};
use super::rows::{Rows, bad_value};
use crate::execution::Block;
use crate::units::{CpuId, Ticks};

#[derive(Default)]
pub(super) struct BlockRows {
    thread: Required<Int32Type>,
    cpu: Required<Int32Type>,
    start: Required<Int64Type>,
    end: Required<Int64Type>,
}

impl Rows for BlockRows {
    type Row = Block;

    const KIND: &'static str = "blocks";

    const SCHEMA: &'static str = "message blocks {
        REQUIRED INT32 thread (INTEGER(16, false));
        REQUIRED INT32 cpu (INTEGER(32, false));
        REQUIRED INT64 start (INTEGER(64, false));
        REQUIRED INT64 end (INTEGER(64, false));
    }";

    const RISING: &'static [&'static str] = &["start", "end"];

    fn push(&mut self, block: &Block) {
        self.thread.push(i32::from(block.thread));
        self.cpu.push(block.cpu.0.cast_signed());
        self.start.push(block.start.0.cast_signed());
        self.end.push(block.end.0.cast_signed());
    }

    fn len(&self) -> usize {
        self.thread.values.len()
    }

    fn span(block: &Block) -> (Ticks, Ticks) {
        (block.start, block.end)
    }

    fn clear(&mut self) {
        self.thread.clear();
        self.cpu.clear();
        self.start.clear();
        self.end.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.thread.write(group)?;
        self.cpu.write(group)?;
        self.start.write(group)?;
        self.end.write(group)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<Block>> {
        let thread = Required::<Int32Type>::read(columns)?.values;
        let cpu = Required::<Int32Type>::read(columns)?.values;
        let start = Required::<Int64Type>::read(columns)?.values;
        let end = Required::<Int64Type>::read(columns)?.values;
        (0..columns.rows())
            .map(|row| {
                Ok(Block {
                    thread: u16::try_from(thread[row]).map_err(|_| bad_value("thread"))?,
                    cpu: CpuId(cpu[row].cast_unsigned()),
                    start: Ticks(start[row].cast_unsigned()),
                    end: Ticks(end[row].cast_unsigned()),
                })
            })
            .collect()
    }
}
