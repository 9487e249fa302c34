//! Structures that `bpf(2)` takes and fills, as `linux/bpf.h` lays them out.

use super::NAME_BYTES;

/// The first fields of `union bpf_attr` for `BPF_MAP_CREATE`.
#[repr(C)]
pub(super) struct CreateMap {
    pub(super) kind: u32,
    pub(super) key_bytes: u32,
    pub(super) value_bytes: u32,
    pub(super) entries: u32,
    pub(super) flags: u32,
    pub(super) inner: u32,
    pub(super) numa_node: u32,
    pub(super) name: [u8; NAME_BYTES],
}

const _: () = assert!(size_of::<CreateMap>() == 44, "the kernel's name ends at byte 44");

/// The fields for `BPF_MAP_*_ELEM`.
#[repr(C)]
pub(super) struct Element {
    pub(super) map: u32,
    pub(super) padding: u32,
    pub(super) key: u64,
    pub(super) value: u64,
    pub(super) flags: u64,
}

const _: () = assert!(size_of::<Element>() == 32, "the kernel's structure has 32 bytes");

/// The first fields for `BPF_PROG_LOAD`.
#[repr(C)]
pub(super) struct Load {
    pub(super) kind: u32,
    pub(super) count: u32,
    pub(super) instructions: u64,
    pub(super) license: u64,
    pub(super) log_level: u32,
    pub(super) log_bytes: u32,
    pub(super) log: u64,
    pub(super) kernel_version: u32,
    pub(super) flags: u32,
    pub(super) name: [u8; NAME_BYTES],
    pub(super) interface: u32,
    pub(super) attach_type: u32,
}

const _: () = assert!(size_of::<Load>() == 72, "the kernel's attach type ends at byte 72");

/// The first fields for `BPF_PROG_TEST_RUN`.
#[repr(C)]
pub(super) struct TestRun {
    pub(super) program: u32,
    pub(super) returned: u32,
    pub(super) bytes_in: u32,
    pub(super) bytes_out: u32,
    pub(super) data_in: u64,
    pub(super) data_out: u64,
    pub(super) repeat: u32,
    pub(super) duration: u32,
    pub(super) context_in_bytes: u32,
    pub(super) context_out_bytes: u32,
    pub(super) context_in: u64,
    pub(super) context_out: u64,
}

const _: () = assert!(size_of::<TestRun>() == 64, "the kernel's contexts end at byte 64");

/// The fields for `BPF_PROG_GET_FD_BY_ID`.
#[repr(C)]
pub(super) struct ById {
    pub(super) id: u32,
    pub(super) next: u32,
    pub(super) flags: u32,
}

const _: () = assert!(size_of::<ById>() == 12, "the kernel's structure has 12 bytes");

/// The fields for `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
pub(super) struct AskInfo {
    pub(super) descriptor: u32,
    pub(super) bytes: u32,
    pub(super) info: u64,
}

const _: () = assert!(size_of::<AskInfo>() == 16, "the kernel's structure has 16 bytes");

/// The first fields for `BPF_LINK_CREATE`.
#[repr(C)]
pub(super) struct CreateLink {
    pub(super) program: u32,
    pub(super) interface: u32,
    pub(super) attach_type: u32,
    pub(super) flags: u32,
}

const _: () = assert!(size_of::<CreateLink>() == 16, "the kernel's flags end at byte 16");

/// The beginning of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
pub(super) struct ProgramFields {
    pub(super) kind: u32,
    pub(super) id: u32,
    pub(super) tag: [u8; 8],
    pub(super) lengths: [u32; 2],
    pub(super) code: [u64; 2],
    pub(super) load_time: u64,
    pub(super) created_by: u32,
    pub(super) maps: u32,
    pub(super) map_ids: u64,
    pub(super) name: [u8; NAME_BYTES],
}

const _: () = assert!(size_of::<ProgramFields>() == 80, "the kernel's name ends at byte 80");

/// `struct bpf_link_info` of a link to an interface.
#[repr(C)]
#[derive(Default)]
pub(super) struct LinkFields {
    pub(super) kind: u32,
    pub(super) id: u32,
    pub(super) program: u32,
    pub(super) padding: u32,
    pub(super) interface: u32,
    pub(super) unused: u32,
}

const _: () = assert!(size_of::<LinkFields>() == 24, "the interface stands at byte 16");

/// Structures that `bpf(2)` takes: made of integers, pointers among them as numbers.
pub(super) trait Attribute {}

impl Attribute for CreateMap {}
impl Attribute for Element {}
impl Attribute for Load {}
impl Attribute for TestRun {}
impl Attribute for ById {}
impl Attribute for AskInfo {}
impl Attribute for CreateLink {}
