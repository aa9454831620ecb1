//! The domains of the recorder that is installed in a global recorder.

use super::global_recorder::GlobalRecorder;
use crate::recorder::{DomainState, UnknownDomain};

impl GlobalRecorder {
    /// Returns the domains of the installed recorder ([`Recorder::domains`](crate::recorder::Recorder::domains)).
    /// Returns an empty list if no recorder is installed.
    pub fn domains(&'static self) -> Vec<DomainState> {
        self.installed().map_or_else(Vec::new, |installed| installed.domains())
    }

    /// Switches a domain of the installed recorder on. Has no effect if no recorder is installed. A domain that the
    /// configuration forbids stays off.
    ///
    /// # Errors
    /// Returns an error if the installed recorder has no domain of that name.
    pub fn enable_domain(&'static self, name: &str) -> Result<(), UnknownDomain> {
        self.installed().map_or(Ok(()), |installed| installed.enable_domain(name))
    }

    /// Switches a domain of the installed recorder off. Has no effect if no recorder is installed. From then on,
    /// `record!` evaluates and records nothing for an event of the domain, except on threads with an override, whose
    /// recorder has domains of its own.
    ///
    /// # Errors
    /// Returns an error if the installed recorder has no domain of that name.
    pub fn disable_domain(&'static self, name: &str) -> Result<(), UnknownDomain> {
        self.installed().map_or(Ok(()), |installed| installed.disable_domain(name))
    }
}

#[cfg(all(test, feature = "macros"))]
mod tests {
    use super::*;
    use crate::recorder::{ContentDescription, Recorder};
    use crate::schema::EventType;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    static MARKET: GlobalRecorder = GlobalRecorder::new("market");

    #[derive(EventType, Clone, Copy)]
    #[event(content_type = 300, recorder = MARKET, domains)]
    #[repr(u16)]
    enum Market {
        #[event(domain = "orderbook")]
        Placed = 0x0100,
        #[event(domain = "prices")]
        Quoted = 0x0200,
    }

    #[test]
    fn the_recorders_word_decides_while_the_filter_is_not_up_to_date() {
        let builder = Recorder::builder(ContentDescription::from_event_type::<Market>()).compact(true).shifts(15, 21);
        let recorder = builder.prefault(false).build().unwrap();
        // This follower is called before the global recorder is told. So the filter is what it was before the change.
        let (is_off, evaluated) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        recorder.follow_switch({
            let (is_off, evaluated) = (Arc::clone(&is_off), Arc::clone(&evaluated));
            move || {
                if is_off.load(Ordering::Relaxed) {
                    crate::record!(Market::Quoted; ext[0] = evaluated.fetch_add(1, Ordering::Relaxed));
                }
            }
        });
        MARKET.install(recorder.clone()).unwrap();
        // From now on the global recorder knows the type of the events.
        assert_eq!(crate::record!(Market::Placed), 1);
        is_off.store(true, Ordering::Relaxed);
        MARKET.disable_domain("prices").unwrap();
        assert_eq!((evaluated.load(Ordering::Relaxed), recorder.stats().last_seqno), (0, 1));
    }
}
