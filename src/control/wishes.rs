//! The wishes of all clients. A wish lasts as long as its client, for a given time, or until it is revoked.

use super::shares;
use super::wire::{WishInfo, WishLife};
use std::time::{Duration, Instant};

/// The largest number of wishes of a server.
pub(super) const WISHES_MAX: usize = 1024;
/// The largest size of the texts of all wishes. A server parses all of them when one changes, and tells all to a client
/// that asks.
pub(super) const WISHES_BYTES_MAX: usize = 512 << 10;

/// The wishes that are in force.
#[derive(Default)]
pub(super) struct Wishes {
    wishes: Vec<LivingWish>,
    last_number: u64,
}

struct LivingWish {
    /// The number of the client whose end ends the wish, if its end does so.
    client: Option<u64>,
    pid: u32,
    uid: u32,
    directive: String,
    until: Option<WishEnd>,
}

/// The time at which a wish ends.
#[derive(Clone, Copy)]
struct WishEnd {
    /// By the monotonic clock.
    at: Instant,
    epoch_nanos: u64,
}

/// The client that makes a wish.
#[derive(Clone, Copy)]
pub(super) struct Wisher {
    pub(super) client: u64,
    pub(super) pid: u32,
    pub(super) uid: u32,
}

impl Wishes {
    /// Adds a wish. Returns its number.
    ///
    /// # Errors
    /// Returns the reason if this user has too many or too long wishes, or all users together.
    pub(super) fn add(
        &mut self,
        by: Wisher,
        life: WishLife,
        directive: String,
        now: Instant,
        epoch_nanos: u64,
    ) -> Result<u64, String> {
        let wishes = self.wishes.iter();
        let counts = wishes.clone().map(|wish| (wish.uid, 1));
        let sizes = wishes.map(|wish| (wish.uid, wish.directive.len()));
        let refusal = shares::refusal("wishes", WISHES_MAX, counts, by.uid, 1)
            .or_else(|| shares::refusal("bytes of wishes", WISHES_BYTES_MAX, sizes, by.uid, directive.len()));
        if let Some(text) = refusal {
            return Err(text);
        }
        self.last_number += 1;
        let until = match life {
            WishLife::Millis(millis) => {
                let duration = Duration::from_millis(millis);
                let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                now.checked_add(duration).map(|at| WishEnd { at, epoch_nanos: epoch_nanos.saturating_add(nanos) })
            }
            WishLife::Client | WishLife::Kept => None,
        };
        let client = (life == WishLife::Client).then_some(by.client);
        self.wishes.push(LivingWish { client, pid: by.pid, uid: by.uid, directive, until });
        Ok(self.last_number)
    }

    /// Ends the wishes that live as long as this client. Returns true if there were some.
    pub(super) fn end_client(&mut self, client: u64) -> bool {
        self.end(|wish| wish.client == Some(client)) > 0
    }

    /// Ends the wishes whose time is over. Returns true if there were some.
    pub(super) fn end_expired(&mut self, now: Instant) -> bool {
        self.end(|wish| wish.until.is_some_and(|until| until.at <= now)) > 0
    }

    /// Ends the wishes with this directive that this user may end: root all, others their own. Returns how many.
    pub(super) fn withdraw(&mut self, directive: &str, uid: u32) -> u64 {
        self.end(|wish| wish.directive == directive && (uid == 0 || uid == wish.uid))
    }

    fn end(&mut self, is_over: impl Fn(&LivingWish) -> bool) -> u64 {
        let before = self.wishes.len();
        self.wishes.retain(|wish| !is_over(wish));
        (before - self.wishes.len()) as u64
    }

    /// Returns the time at which the next wish ends by itself.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.wishes.iter().filter_map(|wish| wish.until.map(|until| until.at)).min()
    }

    /// Returns the directives of all wishes, each once.
    pub(super) fn directives(&self) -> Vec<String> {
        let mut directives: Vec<String> = self.wishes.iter().map(|wish| wish.directive.clone()).collect();
        directives.sort_unstable();
        directives.dedup();
        directives
    }

    pub(super) fn infos(&self) -> Vec<WishInfo> {
        let info = |wish: &LivingWish| WishInfo {
            pid: wish.pid,
            uid: wish.uid,
            until_epoch_nanos: wish.until.map_or(0, |until| until.epoch_nanos),
            directive: wish.directive.clone(),
        };
        self.wishes.iter().map(info).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(client: u64, uid: u32) -> Wisher {
        Wisher { client, pid: 100 + client as u32, uid }
    }

    #[test]
    fn a_wish_ends_with_its_client_with_its_time_or_when_it_is_taken_back() {
        let (mut wishes, now) = (Wishes::default(), Instant::now());
        let mut add = |by, life, directive: &str| wishes.add(by, life, directive.into(), now, 1000).unwrap();
        add(by(1, 7), WishLife::Client, "a=debug");
        add(by(2, 7), WishLife::Client, "a=debug");
        add(by(1, 7), WishLife::Millis(5), "b=debug");
        add(by(1, 7), WishLife::Kept, "c=debug");
        add(by(3, 8), WishLife::Kept, "c=debug");
        assert_eq!(wishes.directives(), ["a=debug", "b=debug", "c=debug"]);
        assert!(wishes.end_client(1) && !wishes.end_client(1));
        assert_eq!(wishes.directives(), ["a=debug", "b=debug", "c=debug"]);
        assert_eq!(wishes.next_end(), Some(now + Duration::from_millis(5)));
        assert!(!wishes.end_expired(now) && wishes.end_expired(now + Duration::from_millis(5)));
        assert_eq!((wishes.withdraw("c=debug", 8), wishes.withdraw("c=debug", 0)), (1, 1));
        assert_eq!(wishes.directives(), ["a=debug"]);
        assert_eq!(wishes.infos()[0], WishInfo { pid: 102, uid: 7, until_epoch_nanos: 0, directive: "a=debug".into() });
    }

    #[test]
    fn another_user_leaves_room_for_the_wishes_of_a_programs_user_and_root() {
        let (mut wishes, now) = (Wishes::default(), Instant::now());
        let mut add = |uid| wishes.add(by(1, uid), WishLife::Kept, "x=info".into(), now, 0);
        let other = rustix::process::geteuid().as_raw() + 1;
        assert_eq!((0..WISHES_MAX).filter(|_| add(other).is_ok()).count(), WISHES_MAX / 4);
        assert!(add(0).is_ok());
    }

    #[test]
    fn long_wishes_of_another_user_leave_room_for_those_of_a_programs_user_and_root() {
        let (mut wishes, now) = (Wishes::default(), Instant::now());
        let mut add = |uid, bytes| wishes.add(by(1, uid), WishLife::Kept, "x".repeat(bytes), now, 0);
        let other = rustix::process::geteuid().as_raw() + 1;
        assert!((0..8).all(|_| add(other, 16 << 10).is_ok()));
        assert!(add(other, 1).is_err_and(|text| text.contains("131072 of them may be of one other user")));
        assert_eq!((0..100).filter(|_| add(0, 16 << 10).is_ok()).count(), 24);
        assert!(add(0, 1).is_err_and(|text| text.contains("has 524288 bytes of wishes")));
    }

    #[test]
    fn there_are_never_more_wishes_than_the_server_has_room_for() {
        let (mut wishes, now) = (Wishes::default(), Instant::now());
        let mut add = || wishes.add(by(1, 0), WishLife::Millis(u64::MAX), "x=info".into(), now, u64::MAX);
        assert!((0..WISHES_MAX).all(|_| add().is_ok()) && add().is_err());
        assert_eq!(
            wishes.infos()[0].until_epoch_nanos,
            if now.checked_add(Duration::from_millis(u64::MAX)).is_some() { u64::MAX } else { 0 }
        );
    }
}
