//! The configuration string of a ring: `<name-or-path>`, `<name-or-path>:<descriptor-shift>:<payload-shift>` or
//! `<name-or-path>:<size>`.
//!
//! The string has the rules of the original C implementation. Only sizes such as `64MiB` are an addition.
//!
//! - The first field is required. Without a `/`, it is the name of a ring in the ring directory. With a `/`, it is a
//!   path, used as written.
//! - A descriptor shift *s* means 2^*s* descriptors, and a payload shift *s* means 2^*s* bytes of payload. A shift that
//!   is missing or empty (`f::30`) has its default value.
//! - A size (a number with a unit) replaces both shifts, and limits the memory of the ring.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::byte_count::ByteCount;
use super::decimal::digits;
use super::error::{ShmError, ShmErrorKind};
use super::placeholders;

/// Largest number of bytes in a name. File systems allow 255 bytes. While a ring is being made, `.~` and the process id
/// are appended to the name of its file.
const NAME_BYTES_MAX: usize = 255 - ".~4294967295".len();

/// The limits of a shift, and its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShiftLimits {
    /// The smallest shift allowed.
    pub min: u8,
    /// The largest shift allowed.
    pub max: u8,
    /// The shift of a field that is missing or empty.
    pub default: u8,
}

/// The limits of both shifts. They differ by kind of ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigLimits {
    /// Limits of the descriptor shift.
    pub descriptor: ShiftLimits,
    /// Limits of the payload shift.
    pub payload: ShiftLimits,
}

impl fmt::Display for ConfigLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descriptor, payload } = self;
        write!(
            f,
            "a descriptor shift from {} to {} (2^shift events) and a payload shift from {} to {} (2^shift bytes)",
            descriptor.min, descriptor.max, payload.min, payload.max
        )
    }
}

/// The name or path by which a ring is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RingName {
    /// A file name in the ring directory.
    Bare(OsString),
    /// A path with at least one `/`, used as written.
    Path(PathBuf),
}

impl RingName {
    /// Reads a name or path.
    ///
    /// # Errors
    /// [`BadConfig`](ShmErrorKind::BadConfig) if the name is empty, holds a NUL byte, or names a directory (`.`, `..`,
    /// or an ending `/`, `/.` or `/..`), or if its last component has more than 243 bytes.
    pub fn new(name: impl AsRef<OsStr>) -> Result<Self, ShmError> {
        let name = name.as_ref();
        Self::understand(name).map_err(|found| {
            ShmError::new(
                ShmErrorKind::BadConfig,
                "use ring name",
                format_args!("{:?} {found}", name.to_string_lossy()),
            )
            .mend("give a file name such as `my-events`, or a path such as `/dev/shm/my-events`")
        })
    }

    /// Returns the name, or a description of its fault.
    fn understand(name: &OsStr) -> Result<Self, &'static str> {
        let bytes = name.as_encoded_bytes();
        let last = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or(bytes);
        if bytes.is_empty() {
            Err("is empty")
        } else if bytes.contains(&0) {
            Err("holds a NUL byte")
        } else if matches!(last, b"" | b"." | b"..") {
            Err("names a directory")
        } else if last.len() > NAME_BYTES_MAX {
            Err("is longer than 243 bytes")
        } else if last.len() == bytes.len() {
            Ok(Self::Bare(name.to_os_string()))
        } else {
            Ok(Self::Path(PathBuf::from(name)))
        }
    }

    /// Returns the name or path as it was written.
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        match self {
            Self::Bare(name) => name,
            Self::Path(path) => path.as_os_str(),
        }
    }

    /// Returns the name with `suffix` appended. For example, `perf` and `.3` give `perf.3`.
    ///
    /// # Errors
    /// As [`RingName::new`], if the longer name is not allowed.
    pub fn with_suffix(&self, suffix: &str) -> Result<Self, ShmError> {
        let mut name = self.as_os_str().to_os_string();
        name.push(suffix);
        Self::new(name)
    }
}

impl fmt::Display for RingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Path::new(self.as_os_str()).display().fmt(f)
    }
}

/// The content of a configuration string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingConfig {
    /// The name or path of the ring.
    pub name: RingName,
    /// The size of the ring, or `None` if the string has only a name.
    pub size: Option<RingSize>,
}

/// The size of a ring, as a program or user gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSize {
    /// Both shifts.
    Shifts {
        /// The binary logarithm of the number of descriptors.
        descriptor: u32,
        /// The binary logarithm of the bytes of the payload buffer.
        payload: u32,
    },
    /// The upper bound of the ring's memory, in bytes. With several rings it holds for all of them together.
    Memory(u64),
}

/// The remedy for every error of a configuration string.
const MEND: &str =
    "write <name-or-path>, <name-or-path>:<size> (`my-app:64MiB`) or <name-or-path>:<descriptor-shift>:<payload-shift>";

impl RingConfig {
    /// Reads a configuration string. A path in it cannot contain a `:`, because `:` separates the fields. In the name,
    /// `{pid}` and `{exe}` are replaced by the id of this process and the name of its program.
    ///
    /// # Errors
    /// Returns the error [`BadConfig`](ShmErrorKind::BadConfig) if the string is malformed, the name begins with `@`,
    /// as the addresses of servers do, or a shift is outside of its limits. The message names the string, the bad
    /// field, and what is allowed.
    pub fn parse(config: impl AsRef<OsStr>, limits: &ConfigLimits) -> Result<Self, ShmError> {
        let config = config.as_ref();
        let bad = |found: fmt::Arguments<'_>| {
            let config = config.to_string_lossy();
            ShmError::new(ShmErrorKind::BadConfig, "use ring configuration", format_args!("{config:?}: {found}"))
                .mend(MEND)
        };
        let mut fields = config.as_encoded_bytes().split(|&byte| byte == b':');
        let mut field = || fields.next().unwrap_or_default();
        let (name, descriptor, payload) = (field(), field(), field());
        // SAFETY: the bytes are the start of an `OsStr`. They end at the end of the `OsStr` or before a `:`, which is
        // valid UTF-8.
        let name = unsafe { OsStr::from_encoded_bytes_unchecked(name) };
        let more = fields.count();
        if more > 0 {
            return Err(bad(format_args!("it has {} fields, at most 3 are allowed", 3 + more)));
        }
        let refused = |found: &dyn fmt::Display| bad(format_args!("the name {:?} {found}", name.to_string_lossy()));
        let name = placeholders::expand(name).map_err(|found| refused(&found))?;
        if name.as_encoded_bytes().starts_with(b"@") {
            let found = "begins with `@`, which means the address of a server to readers; leave it out, or write a path (`./@name`)";
            return Err(refused(&found));
        }
        let name = RingName::understand(&name).map_err(|found| refused(&found))?;
        if descriptor.is_empty() && payload.is_empty() {
            return Ok(Self { name, size: None });
        }
        if let Some(size) = size_in_words(descriptor) {
            if !payload.is_empty() {
                return Err(bad(format_args!("a size in words ({size}) stands alone, and no shift follows it")));
            }
            let ByteCount(bytes) = ByteCount::parse(size).map_err(|why| bad(format_args!("{size:?}: {why}")))?;
            return Ok(Self { name, size: Some(RingSize::Memory(bytes)) });
        }
        let shifts = (parse_shift(descriptor, &limits.descriptor), parse_shift(payload, &limits.payload));
        let (Some(descriptor_shift), Some(payload_shift)) = shifts else {
            let (descriptor, payload) = (String::from_utf8_lossy(descriptor), String::from_utf8_lossy(payload));
            return Err(match shifts {
                (Some(_), _) => bad(format_args!("payload shift {payload:?}, expected {limits}")),
                (_, Some(_)) => bad(format_args!("descriptor shift {descriptor:?}, expected {limits}")),
                _ => bad(format_args!(
                    "descriptor shift {descriptor:?} and payload shift {payload:?}, expected {limits}"
                )),
            });
        };
        let size = RingSize::Shifts { descriptor: descriptor_shift.into(), payload: payload_shift.into() };
        Ok(Self { name, size: Some(size) })
    }
}

/// Returns the text of a field that is a size in words: it begins with a digit, and does not consist of digits alone,
/// as a shift does.
fn size_in_words(field: &[u8]) -> Option<&str> {
    let is_size = field.first()?.is_ascii_digit() && !field.iter().all(u8::is_ascii_digit);
    is_size.then(|| str::from_utf8(field).ok()).flatten()
}

/// Reads a shift, a decimal number. An empty field gives the default. Returns `None` if the field is not a number
/// (signs and blanks are not allowed), or if the number is outside of the limits.
fn parse_shift(field: &[u8], limits: &ShiftLimits) -> Option<u8> {
    if field.is_empty() {
        return Some(limits.default);
    }
    let shift = digits(field)?.try_into().ok()?;
    (limits.min..=limits.max).contains(&shift).then_some(shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt as _;

    const LIMITS: ConfigLimits = ConfigLimits {
        descriptor: ShiftLimits { min: 16, max: 32, default: 21 },
        payload: ShiftLimits { min: 27, max: 40, default: 29 },
    };

    fn parse(config: &str) -> Result<RingConfig, ShmError> {
        RingConfig::parse(config, &LIMITS)
    }

    #[test]
    fn missing_and_empty_shifts_take_their_defaults() {
        for (config, descriptor, payload) in
            [("f::30", 21, 30), ("f:20", 20, 29), ("f:20:", 20, 29), ("f:16:40", 16, 40), ("f:32:27", 32, 27)]
        {
            let parsed = parse(config).unwrap();
            assert_eq!(parsed.name, RingName::Bare("f".into()));
            assert_eq!(parsed.size, Some(RingSize::Shifts { descriptor, payload }), "{config}");
        }
        for config in ["f", "f:", "f::"] {
            assert_eq!(parse(config).unwrap().size, None, "{config}");
        }
    }

    #[test]
    fn a_number_with_a_unit_is_the_memory_of_the_ring() {
        for (config, bytes) in [("f:64MiB", 64 << 20), ("f:64m:", 64 << 20), ("f:2G", 2 << 30), ("f:100B", 100)] {
            assert_eq!(parse(config).unwrap().size, Some(RingSize::Memory(bytes)), "{config}");
        }
    }

    #[test]
    fn a_slash_makes_it_a_path_as_written() {
        for path in ["/dev/shm/x", "./x", "a/../x", "/x"] {
            assert_eq!(parse(path).unwrap().name, RingName::Path(path.into()));
        }
    }

    #[test]
    fn a_bad_string_is_refused_with_the_field_and_the_range() {
        insta::assert_snapshot!(
            ["", ".", "..", "a/", "a/..", ":20:30", "f:15", "f::41", "f:15:41", "f:x", "f:-20", "f:+20", "f: 20", "f:999", "f:1:2:3",
             "f:64Mi", "f:1.5G", "f-{host}", "{pid", "f:64MiB:30", "f:20:64MiB", "f:99999999999999999999k"]
                .map(|config| parse(config).unwrap_err().to_string().split("; write").next().unwrap().to_owned()).join("\n"),
            @r#"
            cannot use ring configuration: "": the name "" is empty
            cannot use ring configuration: ".": the name "." names a directory
            cannot use ring configuration: "..": the name ".." names a directory
            cannot use ring configuration: "a/": the name "a/" names a directory
            cannot use ring configuration: "a/..": the name "a/.." names a directory
            cannot use ring configuration: ":20:30": the name "" is empty
            cannot use ring configuration: "f:15": descriptor shift "15", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f::41": payload shift "41", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f:15:41": descriptor shift "15" and payload shift "41", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f:x": descriptor shift "x", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f:-20": descriptor shift "-20", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f:+20": descriptor shift "+20", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f: 20": descriptor shift " 20", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f:999": descriptor shift "999", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f:1:2:3": it has 4 fields, at most 3 are allowed
            cannot use ring configuration: "f:64Mi": "64Mi": expected a size like 500k, 100M or 2GiB
            cannot use ring configuration: "f:1.5G": "1.5G": expected a size like 500k, 100M or 2GiB
            cannot use ring configuration: "f-{host}": the name "f-{host}" has {host}, expected {pid} or {exe}
            cannot use ring configuration: "{pid": the name "{pid" has {pid, expected {pid} or {exe}
            cannot use ring configuration: "f:64MiB:30": a size in words (64MiB) stands alone, and no shift follows it
            cannot use ring configuration: "f:20:64MiB": payload shift "64MiB", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes)
            cannot use ring configuration: "f:99999999999999999999k": "99999999999999999999k": too large
            "#
        );
        for config in ["", "f:15", "f:1:2:3"] {
            assert_eq!(parse(config).unwrap_err().kind(), ShmErrorKind::BadConfig);
        }
        assert!(parse("a\0b").unwrap_err().to_string().contains("NUL"));
        assert!(parse(&"n".repeat(244)).is_err());
        assert!(parse(&"n".repeat(243)).is_ok());
    }

    /// Readers take such a name for the address of a server, so nobody could read the ring.
    #[test]
    fn a_recorder_has_no_name_that_readers_take_for_a_server() {
        for config in ["@x", "@x:64MiB", "@directory/x"] {
            let refused = parse(config).unwrap_err();
            assert_eq!(refused.kind(), ShmErrorKind::BadConfig);
            assert!(refused.to_string().contains("begins with `@`"), "{refused}");
        }
        for config in ["x@y", "./@x", "/dev/shm/@x"] {
            assert!(parse(config).is_ok(), "{config}");
        }
    }

    #[test]
    fn a_suffix_stays_in_the_same_directory() {
        let path = RingName::new("/a/b").unwrap();
        assert_eq!(path.with_suffix(".1").unwrap(), RingName::Path("/a/b.1".into()));
        assert!(RingName::new("n".repeat(243)).unwrap().with_suffix(".1").is_err());
    }

    #[test]
    fn a_name_that_is_not_utf8_is_kept_byte_for_byte() {
        let config = OsStr::from_bytes(b"\xffring::30");
        let parsed = RingConfig::parse(config, &LIMITS).unwrap();
        assert_eq!(parsed.name.as_os_str().as_bytes(), b"\xffring");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_config_within_limits_or_an_error(bytes: Vec<u8>) {
            if let Ok(config) = RingConfig::parse(OsStr::from_bytes(&bytes), &LIMITS) {
                if let Some(RingSize::Shifts { descriptor, payload }) = config.size {
                    prop_assert!((16..=32).contains(&descriptor) && (27..=40).contains(&payload));
                }
                prop_assert!(bytes.starts_with(config.name.as_os_str().as_bytes()));
            }
        }

        #[test]
        fn what_is_written_is_what_is_read(name in "[a-z./-]{1,20}x", descriptor in 16..=32u32, payload in 27..=40u32) {
            let config = parse(&format!("{name}:{descriptor}:{payload}")).unwrap();
            prop_assert_eq!(config.name.as_os_str(), OsStr::new(&name));
            prop_assert_eq!(config.size, Some(RingSize::Shifts { descriptor, payload }));
        }
    }
}
