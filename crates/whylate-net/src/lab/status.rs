//! What beds there are, and what they look like.

use whylate_host::bed::{self, Role};
use whylate_model::lab::{
    BedNotes, BedStatus, LAB_VERSION, LabStatus, NamespaceStatus, ProcessInside,
};

use super::ip;
use crate::error::NetError;

/// The notes of a bed, which exist when it is whole.
const NOTES: &str = "bed.json";
/// Notes are shorter; what is longer is not ours.
const MOST_BYTES: u64 = 64 << 10;

/// The bed `name`; none where nothing of it exists.
#[must_use]
pub fn of(name: &str) -> Option<BedStatus> {
    if !bed::is_name(name) || !bed::exists(name) {
        return None;
    }
    let namespace = |role: &Role| {
        let inside = bed::processes(name, *role).into_iter();
        bed::mount_point(name, *role).exists().then(|| NamespaceStatus {
            role: role.name().to_owned(),
            name: bed::namespace(name, *role),
            links: ip::links(name, *role),
            processes: inside.map(|(pid, name)| ProcessInside { pid, name }).collect(),
        })
    };
    Some(BedStatus {
        name: name.to_owned(),
        notes: notes(name),
        namespaces: Role::ALL.iter().filter_map(namespace).collect(),
    })
}

/// All beds.
#[must_use]
pub fn of_all() -> LabStatus {
    let beds = bed::all().iter().filter_map(|name| of(name)).collect();
    LabStatus { format_version: LAB_VERSION, beds }
}

pub(super) fn notes(name: &str) -> Option<BedNotes> {
    let file = std::fs::File::open(bed::notes(name).join(NOTES)).ok()?;
    serde_json::from_reader(std::io::Read::take(file, MOST_BYTES)).ok()
}

/// Notes that the bed is whole, as one step.
pub(super) fn note(name: &str, notes: &BedNotes) -> Result<(), NetError> {
    let path = bed::notes(name).join(NOTES);
    let fresh = path.with_extension("new");
    let written = serde_json::to_vec(notes).map_err(std::io::Error::other).and_then(|text| {
        std::fs::write(&fresh, text)?;
        std::fs::rename(&fresh, &path)
    });
    written.map_err(|source| NetError::Bed { what: format!("write {}", path.display()), source })
}
