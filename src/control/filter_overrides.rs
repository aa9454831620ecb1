//! The filter overrides of all clients. A filter override lasts as long as its client, for a given time, or until it is
//! revoked.

use super::shares;
use super::wire::{OverrideInfo, OverrideLife};
use std::time::{Duration, Instant};

/// The largest number of filter overrides of a server.
pub(super) const OVERRIDES_MAX: usize = 1024;
/// The largest size of the texts of all filter overrides. A server parses all of them when one changes, and tells all
/// to a client that asks.
pub(super) const OVERRIDES_BYTES_MAX: usize = 512 << 10;

/// The filter overrides that are in force.
#[derive(Default)]
pub(super) struct FilterOverrides {
    overrides: Vec<LiveOverride>,
    last_number: u64,
}

struct LiveOverride {
    /// The number of the client whose end ends the filter override, if its end does so.
    client: Option<u64>,
    pid: u32,
    uid: u32,
    directive: String,
    until: Option<OverrideEnd>,
}

/// The time at which a filter override ends.
#[derive(Clone, Copy)]
struct OverrideEnd {
    /// By the monotonic clock.
    at: Instant,
    epoch_nanos: u64,
}

/// The client that makes a filter override.
#[derive(Clone, Copy)]
pub(super) struct OverrideClient {
    pub(super) client: u64,
    pub(super) pid: u32,
    pub(super) uid: u32,
}

impl FilterOverrides {
    /// Adds a filter override. Returns its number.
    ///
    /// # Errors
    /// Returns the reason if this user has too many or too long filter overrides, or all users together.
    pub(super) fn add(
        &mut self,
        by: OverrideClient,
        life: OverrideLife,
        directive: String,
        now: Instant,
        epoch_nanos: u64,
    ) -> Result<u64, String> {
        let overrides = self.overrides.iter();
        let counts = overrides.clone().map(|filter_override| (filter_override.uid, 1));
        let sizes = overrides.map(|filter_override| (filter_override.uid, filter_override.directive.len()));
        let refusal = shares::refusal("filter overrides", OVERRIDES_MAX, counts, by.uid, 1).or_else(|| {
            shares::refusal("bytes of filter overrides", OVERRIDES_BYTES_MAX, sizes, by.uid, directive.len())
        });
        if let Some(text) = refusal {
            return Err(text);
        }
        self.last_number += 1;
        let until = match life {
            OverrideLife::Millis(millis) => {
                let duration = Duration::from_millis(millis);
                let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                now.checked_add(duration).map(|at| OverrideEnd { at, epoch_nanos: epoch_nanos.saturating_add(nanos) })
            }
            OverrideLife::Client | OverrideLife::Kept => None,
        };
        let client = (life == OverrideLife::Client).then_some(by.client);
        self.overrides.push(LiveOverride { client, pid: by.pid, uid: by.uid, directive, until });
        Ok(self.last_number)
    }

    /// Ends the filter overrides that live as long as this client. Returns true if there were some.
    pub(super) fn end_client(&mut self, client: u64) -> bool {
        self.end(|filter_override| filter_override.client == Some(client)) > 0
    }

    /// Ends the filter overrides whose time is over. Returns true if there were some.
    pub(super) fn end_expired(&mut self, now: Instant) -> bool {
        self.end(|filter_override| filter_override.until.is_some_and(|until| until.at <= now)) > 0
    }

    /// Ends the filter overrides with this directive that this user may end: root all, others their own. Returns how
    /// many.
    pub(super) fn revoke(&mut self, directive: &str, uid: u32) -> u64 {
        self.end(|filter_override| filter_override.directive == directive && (uid == 0 || uid == filter_override.uid))
    }

    fn end(&mut self, is_over: impl Fn(&LiveOverride) -> bool) -> u64 {
        let before = self.overrides.len();
        self.overrides.retain(|filter_override| !is_over(filter_override));
        (before - self.overrides.len()) as u64
    }

    /// Returns the time at which the next filter override ends by itself.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.overrides.iter().filter_map(|filter_override| filter_override.until.map(|until| until.at)).min()
    }

    /// Returns the directives of all filter overrides, each once.
    pub(super) fn directives(&self) -> Vec<String> {
        let mut directives: Vec<String> =
            self.overrides.iter().map(|filter_override| filter_override.directive.clone()).collect();
        directives.sort_unstable();
        directives.dedup();
        directives
    }

    pub(super) fn infos(&self) -> Vec<OverrideInfo> {
        let info = |filter_override: &LiveOverride| OverrideInfo {
            pid: filter_override.pid,
            uid: filter_override.uid,
            until_epoch_nanos: filter_override.until.map_or(0, |until| until.epoch_nanos),
            directive: filter_override.directive.clone(),
        };
        self.overrides.iter().map(info).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(client: u64, uid: u32) -> OverrideClient {
        OverrideClient { client, pid: 100 + client as u32, uid }
    }

    #[test]
    fn an_override_ends_with_its_client_with_its_time_or_when_it_is_revoked() {
        let (mut overrides, now) = (FilterOverrides::default(), Instant::now());
        let mut add = |by, life, directive: &str| overrides.add(by, life, directive.into(), now, 1000).unwrap();
        add(by(1, 7), OverrideLife::Client, "a=debug");
        add(by(2, 7), OverrideLife::Client, "a=debug");
        add(by(1, 7), OverrideLife::Millis(5), "b=debug");
        add(by(1, 7), OverrideLife::Kept, "c=debug");
        add(by(3, 8), OverrideLife::Kept, "c=debug");
        assert_eq!(overrides.directives(), ["a=debug", "b=debug", "c=debug"]);
        assert!(overrides.end_client(1) && !overrides.end_client(1));
        assert_eq!(overrides.directives(), ["a=debug", "b=debug", "c=debug"]);
        assert_eq!(overrides.next_end(), Some(now + Duration::from_millis(5)));
        assert!(!overrides.end_expired(now) && overrides.end_expired(now + Duration::from_millis(5)));
        assert_eq!((overrides.revoke("c=debug", 8), overrides.revoke("c=debug", 0)), (1, 1));
        assert_eq!(overrides.directives(), ["a=debug"]);
        assert_eq!(
            overrides.infos()[0],
            OverrideInfo { pid: 102, uid: 7, until_epoch_nanos: 0, directive: "a=debug".into() }
        );
    }

    #[test]
    fn another_user_leaves_room_for_the_overrides_of_a_programs_user_and_root() {
        let (mut overrides, now) = (FilterOverrides::default(), Instant::now());
        let mut add = |uid| overrides.add(by(1, uid), OverrideLife::Kept, "x=info".into(), now, 0);
        let other = rustix::process::geteuid().as_raw() + 1;
        assert_eq!((0..OVERRIDES_MAX).filter(|_| add(other).is_ok()).count(), OVERRIDES_MAX / 4);
        assert!(add(0).is_ok());
    }

    #[test]
    fn long_overrides_of_another_user_leave_room_for_those_of_a_programs_user_and_root() {
        let (mut overrides, now) = (FilterOverrides::default(), Instant::now());
        let mut add = |uid, bytes| overrides.add(by(1, uid), OverrideLife::Kept, "x".repeat(bytes), now, 0);
        let other = rustix::process::geteuid().as_raw() + 1;
        assert!((0..8).all(|_| add(other, 16 << 10).is_ok()));
        assert!(add(other, 1).is_err_and(|text| text.contains("131072 of them may be of one other user")));
        assert_eq!((0..100).filter(|_| add(0, 16 << 10).is_ok()).count(), 24);
        assert!(add(0, 1).is_err_and(|text| text.contains("has 524288 bytes of filter overrides")));
    }

    #[test]
    fn there_are_never_more_overrides_than_the_server_has_room_for() {
        let (mut overrides, now) = (FilterOverrides::default(), Instant::now());
        let mut add = || overrides.add(by(1, 0), OverrideLife::Millis(u64::MAX), "x=info".into(), now, u64::MAX);
        assert!((0..OVERRIDES_MAX).all(|_| add().is_ok()) && add().is_err());
        assert_eq!(
            overrides.infos()[0].until_epoch_nanos,
            if now.checked_add(Duration::from_millis(u64::MAX)).is_some() { u64::MAX } else { 0 }
        );
    }
}
