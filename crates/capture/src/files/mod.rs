//! Files under a name.
//!
//! | file | idea |
//! |---|---|
//! | `output_entry` | making a file under a name, and the rules about which files are never replaced |
//! | `read_files` | the files that this program reads, and so never overwrites |
//! | `foreign` | files whose paths another process has chosen |
//! | `parts` | the names of the files of a rotated capture |

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub mod foreign;
#[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), path = "output_entry_unsupported.rs")]
pub(crate) mod output_entry;
pub(crate) mod parts;
#[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), path = "read_files_unsupported.rs")]
pub(crate) mod read_files;
