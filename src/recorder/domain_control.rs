//! Switching a recorder and its domains on and off.

use super::core::Core;
use super::domain_switch::{DomainState, SwitchValues};
use super::domains::UnknownDomain;
use super::handle::Recorder;

impl Core {
    /// Changes the values of the switch, and publishes the domains that follow from them. In a forked child this does
    /// nothing: the recorder is off there, and a thread that the child does not have may hold the lock.
    fn change_switch(&self, change: impl FnOnce(&mut SwitchValues)) {
        if !self.is_original_process() {
            return;
        }
        let mut values = self.switch.lock();
        change(&mut values);
        self.publish_recorded_domains(values.recorded());
        // The followers are called under the lock. So they see the changes in the order in which they were made.
        values.followers.iter().for_each(|follower| follower());
    }
}

impl Recorder {
    /// Switches recording on or off, for all handles. It does not change which domains are switched on.
    pub fn set_enabled(&self, enabled: bool) {
        self.core.change_switch(|values| values.is_on = enabled);
    }

    /// Returns the domains of the recorder's events, by ascending number. A recorder whose schema has no domains has
    /// one domain for all events. Its name is that of the content type, in small letters. In a forked child the list
    /// is empty.
    pub fn domains(&self) -> Vec<DomainState> {
        if !self.belongs_to_this_process() {
            return Vec::new();
        }
        let values = self.core.switch.lock();
        let (enabled, forbidden) = (values.enabled(), values.forbidden);
        drop(values);
        let state = |(bits, name): (u64, &str)| DomainState {
            name: name.to_owned(),
            is_enabled: enabled & bits != 0,
            is_forbidden: forbidden & bits == bits,
        };
        self.core.switch.names.iter().map(state).collect()
    }

    /// Switches a domain on, for all handles. A domain that the configuration forbids stays off.
    ///
    /// # Errors
    /// Returns an error if the recorder has no domain of that name.
    pub fn enable_domain(&self, name: &str) -> Result<(), UnknownDomain> {
        let bits = self.core.switch.names.bits_of(name)?;
        self.core.change_switch(|values| values.configured |= bits);
        Ok(())
    }

    /// Switches a domain off, for all handles. From then on, `record!` evaluates and records nothing for an event of
    /// the domain. The domain stays on as long as a client of the process requests it.
    ///
    /// # Errors
    /// Returns an error if the recorder has no domain of that name.
    pub fn disable_domain(&self, name: &str) -> Result<(), UnknownDomain> {
        let bits = self.core.switch.names.bits_of(name)?;
        self.core.change_switch(|values| values.configured &= !bits);
        Ok(())
    }

    /// Replaces the set of domains that clients request by `names`. Returns an error without effect if one of the names
    /// is unknown.
    pub(crate) fn set_requested_domains(&self, names: &[&str]) -> Result<(), UnknownDomain> {
        let known = &self.core.switch.names;
        let requested = names.iter().try_fold(0, |requested, name| Ok(requested | known.bits_of(name)?))?;
        self.core.change_switch(|values| values.requested = requested);
        Ok(())
    }

    /// Registers a function that is called after each change of the switch. It runs under the lock of the switch, so
    /// it must not change the switch.
    pub(crate) fn follow_switch(&self, follower: impl Fn() + Send + Sync + 'static) {
        self.core.change_switch(|values| values.followers.push(Box::new(follower)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::ContentDescription;
    use proptest::prelude::*;
    use proptest::sample::subsequence;
    use std::collections::BTreeSet;

    const NAMES: [&str; 4] = ["a", "b", "c", "d"];

    #[derive(Clone, Debug)]
    enum Step {
        Enable(&'static str),
        Disable(&'static str),
        Request(Vec<&'static str>),
        RequestUnknown,
        Switch(bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        let name = || (0..NAMES.len()).prop_map(|i| NAMES[i]);
        prop_oneof![
            name().prop_map(Step::Enable),
            name().prop_map(Step::Disable),
            subsequence(NAMES.to_vec(), 0..=NAMES.len()).prop_map(Step::Request),
            Just(Step::RequestUnknown),
            any::<bool>().prop_map(Step::Switch),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_domain_is_on_if_it_is_configured_or_requested_and_not_forbidden(
            on in subsequence(NAMES.to_vec(), 0..=NAMES.len()),
            forbidden in subsequence(NAMES.to_vec(), 0..=NAMES.len()),
            steps in prop::collection::vec(step(), 0..20),
        ) {
            let entries = ["none".to_owned()].into_iter().chain(on.iter().map(|name| (*name).to_owned()));
            let entries: Vec<String> = entries.chain(forbidden.iter().map(|name| format!("!{name}"))).collect();
            let domains = NAMES.iter().zip([1, 2, 5, 64]).map(|(name, number)| (number, *name));
            let description = ContentDescription::new(300, "LETTERS").domains(domains);
            let builder = Recorder::builder(description).compact(true).shifts(15, 21).prefault(false);
            let recorder = builder.domains(entries.join(",")).build().unwrap();

            let (mut configured, mut requested, mut is_on) = (BTreeSet::from_iter(on), BTreeSet::new(), true);
            for step in [Step::Switch(true)].into_iter().chain(steps) {
                match step {
                    Step::Enable(name) => {
                        recorder.enable_domain(name).unwrap();
                        configured.insert(name);
                    }
                    Step::Disable(name) => {
                        recorder.disable_domain(name).unwrap();
                        configured.remove(name);
                    }
                    Step::Request(names) => {
                        recorder.set_requested_domains(&names).unwrap();
                        requested = BTreeSet::from_iter(names);
                    }
                    Step::RequestUnknown => {
                        // It has no effect, not even for the names that are known.
                        let error = recorder.set_requested_domains(&["a", "x", "b"]).unwrap_err();
                        prop_assert!(error.to_string().ends_with("expected one of: a, b, c, d"));
                    }
                    Step::Switch(on) => {
                        recorder.set_enabled(on);
                        is_on = on;
                    }
                }
                let is_enabled =
                    |name: &str| (configured.contains(name) || requested.contains(name)) && !forbidden.contains(&name);
                let states = recorder.domains();
                for (state, bit) in states.iter().zip([1, 1 << 1, 1 << 4, 1 << 63]) {
                    prop_assert_eq!(state.is_enabled, is_enabled(&state.name));
                    prop_assert_eq!(recorder.records(bit), is_on && state.is_enabled);
                }
                prop_assert_eq!(recorder.is_enabled(), is_on && NAMES.iter().any(|name| is_enabled(name)));
                prop_assert!(!recorder.records(1 << 2));
            }
        }
    }
}
