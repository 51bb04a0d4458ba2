//! RDB and append-only files: their bytes, and what is left after a kill or a disk that fails.

mod crash;
mod disk_failure;
mod golden_files;
