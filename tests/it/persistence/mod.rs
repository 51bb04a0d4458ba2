//! RDB and append-only files: old ones are read, and a kill or a failing disk loses no answered call.

mod crash;
mod disk_failure;
mod golden_files;
