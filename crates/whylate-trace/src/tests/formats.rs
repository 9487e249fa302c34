//! The texts of `events/*/*/format`.

use crate::TraceError;
use crate::format::{EventFormat, Storage};

use super::builder::recorded_format;

#[test]
fn a_recorded_format_is_read_with_all_its_fields() {
    let format = recorded_format!("sched/sched_migrate_task");
    assert_eq!(format.name, "sched_migrate_task");
    let text = include_str!("../../tests/data/events/sched/sched_migrate_task/format");
    assert!(text.contains(&format!("ID: {}\n", format.id)));
    let fields: Vec<_> = format
        .fields
        .iter()
        .map(|field| (&*field.name, field.storage, field.offset, field.size, field.signed))
        .collect();
    assert_eq!(
        fields,
        [
            ("common_type", Storage::Scalar, 0, 2, false),
            ("common_flags", Storage::Scalar, 2, 1, false),
            ("common_preempt_count", Storage::Scalar, 3, 1, false),
            ("common_pid", Storage::Scalar, 4, 4, true),
            ("comm", Storage::DataLoc, 8, 4, false),
            ("pid", Storage::Scalar, 12, 4, true),
            ("prio", Storage::Scalar, 16, 4, true),
            ("orig_cpu", Storage::Scalar, 20, 4, true),
            ("dest_cpu", Storage::Scalar, 24, 4, true),
        ]
    );
    assert!(format.print_format.starts_with("\"comm=%s pid=%d"));
}

#[test]
fn every_way_to_declare_a_field_is_read() {
    for (declaration, name, storage) in [
        ("char comm[16]", "comm", Storage::Array),
        ("char comm[TASK_COMM_LEN]", "comm", Storage::Array),
        ("unsigned long args[]", "args", Storage::Array),
        ("void * callsite", "callsite", Storage::Scalar),
        ("const char *name", "name", Storage::Scalar),
        ("struct task_struct * task", "task", Storage::Scalar),
        ("__data_loc char[] name", "name", Storage::DataLoc),
        ("__data_loc cpumask_t cpumask", "cpumask", Storage::DataLoc),
        ("__data_loc cpumask_t *[] cpumask", "cpumask", Storage::DataLoc),
        ("__rel_loc char[] name", "name", Storage::RelLoc),
    ] {
        let text = format!(
            "name: x\nID: 9\nformat:\n\tfield:{declaration};\toffset:8;\tsize:4;\tsigned:1;\n"
        );
        let format = EventFormat::parse(&text).unwrap();
        let field = format.field(name).unwrap();
        assert_eq!((field.storage, field.signed), (storage, true), "{declaration}");
        assert_eq!((format.fields.len(), format.print_format.as_str()), (1, ""));
    }
}

#[test]
fn what_is_wrong_with_a_format_is_said_with_its_line() {
    let field = "\tfield:int vector;\toffset:8;\tsize:4;\tsigned:1;\n";
    let cases = [
        ("ID: 9\n".to_owned(), 2),
        ("name:\nID: 9\n".to_owned(), 3),
        ("name: x\n".to_owned(), 2),
        ("name: x\nID: 65536\n".to_owned(), 2),
        ("name: x\nID: -1\n".to_owned(), 2),
        ("name: x\nID: 9\n\tfield:vector;\toffset:8;\tsize:4;\n".to_owned(), 3),
        ("name: x\nID: 9\n\tfield:int vector;\tsize:4;\n".to_owned(), 3),
        ("name: x\nID: 9\n\tfield:int vector;\toffset:8;\n".to_owned(), 3),
        ("name: x\nID: 9\n\tfield:int vector;\toffset:99999999999;\tsize:4;\n".to_owned(), 3),
        (
            "name: x\nID: 9\n\tfield:int vector;\toffset:4294967295;\tsize:4294967295;\n"
                .to_owned(),
            3,
        ),
        (format!("name: x\nID: 9\n{field}{field}"), 4),
    ];
    for (text, expected) in cases {
        match EventFormat::parse(&text) {
            Err(TraceError::FormatMalformed { line, .. }) => assert_eq!(line, expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(EventFormat::parse("").is_err());
}

#[test]
fn a_format_without_bounds_is_refused() {
    let long = "x".repeat(2 << 20);
    assert!(matches!(EventFormat::parse(&long), Err(TraceError::FormatTooLong { .. })));
    let field = |number| format!("\tfield:int f{number};\toffset:8;\tsize:4;\tsigned:1;\n");
    let many = "name: x\nID: 1\n".to_owned() + &(0..1000).map(field).collect::<String>();
    assert!(matches!(
        EventFormat::parse(&many),
        Err(TraceError::FormatMalformed { line: 515, .. })
    ));
}
