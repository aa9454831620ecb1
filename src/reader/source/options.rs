//! The options with which a ring is opened.

use super::expected::Expected;
use crate::reader::error::ReaderError;
use crate::schema::{EventType, Resolution};
use std::time::Duration;

/// Options for opening a ring. Made by [`Reader::options`](crate::reader::Reader::options).
#[derive(Clone, Debug, Default)]
pub struct ReaderOptions {
    expected: Option<Expected>,
    pub(super) snapshot_bytes_max: Option<u64>,
    pub(super) is_header_enough: bool,
    pub(in crate::reader) wait: Option<Duration>,
    pub(super) copied_epoch_nanos: Option<u64>,
}

impl ReaderOptions {
    /// Accepts only rings with the content type and the schema hash of `E`.
    #[must_use]
    pub fn expect_events<E: EventType>(mut self) -> Self {
        self.expected = Some(Expected::exactly::<E>());
        self
    }

    /// Accepts rings with the events `E`, also if they were recorded with another version of the schema that is
    /// compatible. Payloads are then mapped to those of `E` by the names of their fields: [`Cursor::payload`],
    /// [`ReadyEvent::payload`] and [`RingSet::payload`] return payloads that the types of `E` decode. What the ring
    /// has and `E` does not is skipped. Events that `E` does not have come with their code and their bytes.
    /// [`Cursor::copy_batch`] and snapshots copy the payloads as they were recorded, and [`Reader::schema`] is the
    /// ring's own schema. So programs that copy or export rings open them without this option.
    ///
    /// Compatible are events, fields, arrays and values of enums that only one side has. A field or array that only `E`
    /// has needs the attribute `default`, and a name that was changed the attribute `alias`
    /// ([`EventPayload`](crate::schema::EventPayload), [`EventType`]). `docs/FORMAT.md`, "Versions of a schema", has
    /// all rules.
    ///
    /// ```
    /// # #[cfg(feature = "macros")] {
    /// use eventring::reader::{Next, Reader, Seek};
    /// use eventring::recorder::{ContentDescription, Recorder};
    /// use eventring::{EventPayload, EventType, record};
    ///
    /// mod first_release {
    ///     # use eventring::{EventPayload, EventType};
    ///     #[derive(EventPayload)]
    ///     pub struct OrderPlaced {
    ///         pub id: u64,
    ///         pub price: u32,
    ///     }
    ///
    ///     #[derive(EventType, Clone, Copy)]
    ///     #[event(content_type = 300, name = "SHOP")]
    ///     #[repr(u16)]
    ///     pub enum Shop {
    ///         #[event(payload = OrderPlaced)]
    ///         OrderPlaced = 2,
    ///     }
    /// }
    ///
    /// #[derive(EventPayload, Debug, PartialEq)]
    /// struct OrderPlaced {
    ///     id: u64,
    ///     #[event(alias = "price")]
    ///     price_cents: u32,
    ///     #[event(default = 1)]
    ///     pieces: u32,
    /// }
    ///
    /// #[derive(EventType, Clone, Copy)]
    /// #[event(content_type = 300, name = "SHOP")]
    /// #[repr(u16)]
    /// enum Shop {
    ///     #[event(payload = OrderPlaced)]
    ///     OrderPlaced = 2,
    ///     DayEnded = 3,
    /// }
    ///
    /// let recorder = Recorder::builder(ContentDescription::from_event_type::<first_release::Shop>()).anonymous().build()?;
    /// let order = first_release::OrderPlaced { id: 7, price: 250 };
    /// record!(recorder => first_release::Shop::OrderPlaced, &order);
    ///
    /// let mut cursor = Reader::options().compatible::<Shop>().open_fd(recorder.as_fd())?.cursor();
    /// cursor.seek(Seek::Oldest);
    /// let Next::Event(event) = cursor.next() else { panic!("it was recorded") };
    /// let mut buffer = Vec::new();
    /// let payload = cursor.payload(&event, &mut buffer).valid().expect("nothing has overwritten it");
    /// assert_eq!(OrderPlaced::decode_exact(payload)?, OrderPlaced { id: 7, price_cents: 250, pieces: 1 });
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Cursor::payload`]: crate::reader::Cursor::payload
    /// [`Cursor::copy_batch`]: crate::reader::Cursor::copy_batch
    /// [`Reader::schema`]: crate::reader::Reader::schema
    /// [`ReadyEvent::payload`]: crate::reader::ReadyEvent::payload
    /// [`RingSet::payload`]: crate::reader::RingSet::payload
    #[must_use]
    pub fn compatible<E: EventType>(mut self) -> Self {
        self.expected = Some(Expected::compatible_with::<E>());
        self
    }

    /// Refuses a snapshot that decompresses to more than this many bytes. Default: 8 GiB.
    #[must_use]
    pub fn snapshot_bytes_max(mut self, bytes: u64) -> Self {
        self.snapshot_bytes_max = Some(bytes);
        self
    }

    /// Decompresses only the header section (2 MiB) of a snapshot, even if the rest is missing or damaged. The reader
    /// then has [`Reader::info`], the state and the schema, but finds no events. The option is for programs that examine
    /// many files of unknown origin. It has no effect on rings.
    ///
    /// [`Reader::info`]: crate::reader::Reader::info
    #[must_use]
    pub fn header_only(mut self) -> Self {
        self.is_header_enough = true;
        self
    }

    /// Says that the file is a copy that was made by this time, in nanoseconds since the epoch: if its writer is dead
    /// now, it was dead then.
    #[doc(hidden)]
    #[must_use]
    pub fn copied_by(mut self, epoch_nanos: u64) -> Self {
        self.copied_epoch_nanos = Some(epoch_nanos);
        self
    }

    /// Makes [`Self::open`] wait up to `timeout` if the ring does not exist yet, or is being made in place
    /// ([`ReaderError::may_come`]). Default: no waiting. If a [`RingSet`] begins with the oldest events and had to wait
    /// for a ring, it counts overwritten events of this ring as lost.
    ///
    /// [`RingSet`]: crate::reader::RingSet
    #[must_use]
    pub fn wait(mut self, timeout: Duration) -> Self {
        self.wait = Some(timeout);
        self
    }

    /// Checks the content of a ring whose schema text `text` returns. Returns how its payloads become those that are
    /// expected, if they differ.
    pub(in crate::reader) fn check_content(
        &self,
        content_type: u16,
        schema_hash: [u8; 32],
        text: impl FnOnce() -> Option<String>,
    ) -> Result<Option<Resolution>, ReaderError> {
        self.expected.as_ref().map_or(Ok(None), |expected| expected.check(content_type, schema_hash, text))
    }
}
