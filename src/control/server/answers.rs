//! The answer to each request.

use super::connection::{Connection, Lost, MESSAGE_BYTES, UNSENT_BYTES_MAX};
use crate::control::directives::{DOMAIN, check_override, directives};
use crate::control::error::ControlErrorKind;
use crate::control::filter_overrides::{FilterOverrides, OVERRIDES_BYTES_MAX, OVERRIDES_MAX, OverrideClient};
use crate::control::served::ServedFiles;
use crate::control::switches::{self, Switchable};
use crate::control::wire::{Answer, ClientRequest, OverrideLife, ServedInfo, SwitchedDomain};
use crate::shm;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

// A client that reads is never given up because there are many filter overrides. (Each has less than 64 bytes beside
// its text.) The last quarter is for domains.
const _: () = assert!(OVERRIDES_BYTES_MAX + OVERRIDES_MAX * (64 + MESSAGE_BYTES) <= UNSENT_BYTES_MAX / 4 * 3);

/// The parts of a server that answers need.
pub(super) struct ServerState {
    pub(super) files: Arc<ServedFiles>,
    pub(super) overrides: FilterOverrides,
    /// True if filter overrides have ended that are still in force. Several ends cost as much as one.
    pub(super) has_ended_overrides: bool,
    pub(super) program: String,
    /// The number of clients that have greeted.
    pub(super) greeted: u32,
}

impl ServerState {
    /// Answers a request of a client.
    pub(super) fn answer(
        &mut self,
        client: u64,
        connection: &mut Connection,
        number: u32,
        request: ClientRequest,
    ) -> Result<(), Lost> {
        let refusal = self.refusal(connection, &request);
        if let Some((kind, text)) = refusal {
            return connection.send(number, &Answer::Refused { kind, text }, None);
        }
        match request {
            ClientRequest::Hello { .. } => {
                let (pid, program) = (std::process::id(), self.program.clone());
                let (may_switch, clients) = (connection.may_switch, self.greeted);
                self.greeted += 1;
                connection.has_greeted = true;
                connection.send(number, &Answer::Welcome { pid, program, may_switch, clients }, None)
            }
            ClientRequest::List | ClientRequest::Follow => {
                connection.follows |= request == ClientRequest::Follow;
                let files = self.files.infos();
                let count = files.len() as u64;
                files.into_iter().try_for_each(|file| connection.send(number, &Answer::File(file), None))?;
                connection.send(number, &Answer::End { count }, None)
            }
            ClientRequest::Import { id, content_type, schema_hash } => {
                let found = self.files.find(id).ok_or_else(|| match self.files.had(id) {
                    true => format!("there is no file {id} any more: its ring has ended"),
                    false => format!("there is no file {id}, and there was none; LIST names all"),
                });
                let checked = found.and_then(|(info, descriptor)| {
                    check_content(&info, content_type, schema_hash).map(|()| (info, descriptor))
                });
                match checked {
                    Ok((info, descriptor)) => {
                        let imported = Answer::Imported { id, bytes: info.bytes };
                        connection.send(number, &imported, Some(descriptor))
                    }
                    Err(text) => refuse(connection, number, ControlErrorKind::NotFound, text),
                }
            }
            ClientRequest::Override { life, directive } => {
                match self.add_override(client, connection, life, &directive) {
                    Ok((filter_override, note)) => {
                        connection.send(number, &Answer::Granted { filter_override, note }, None)
                    }
                    Err((kind, text)) => refuse(connection, number, kind, text),
                }
            }
            ClientRequest::Revoke { directive } => {
                let count = self.overrides.revoke(directive.trim(), connection.uid);
                if count > 0 {
                    self.apply_overrides();
                }
                connection.send(number, &Answer::End { count }, None)
            }
            ClientRequest::State => self.tell_state(connection, number),
        }
    }

    /// Returns the reason to refuse a request, if there is one. (A client that may not import has no connection.)
    fn refusal(&self, connection: &Connection, request: &ClientRequest) -> Option<(ControlErrorKind, String)> {
        match request {
            ClientRequest::Hello { .. } if connection.has_greeted => Some((
                ControlErrorKind::BadMessage,
                "HELLO was sent before; only the first message may be HELLO".into(),
            )),
            ClientRequest::Hello { .. } => None,
            _ if !connection.has_greeted => {
                Some((ControlErrorKind::BadMessage, "the first message must be HELLO".into()))
            }
            ClientRequest::Override { .. } | ClientRequest::Revoke { .. } if !connection.may_switch => {
                Some((ControlErrorKind::PermissionDenied, denied(connection.uid, "switch what is recorded by")))
            }
            _ => None,
        }
    }

    fn add_override(
        &mut self,
        client: u64,
        connection: &Connection,
        life: OverrideLife,
        text: &str,
    ) -> Result<(u64, String), (ControlErrorKind, String)> {
        let text = text.trim();
        let bad = |text| (ControlErrorKind::BadDirective, text);
        check_override(text).map_err(bad)?;
        let switches = switches::all();
        for directive in directives(text) {
            check_directive(&switches, directive).map_err(bad)?;
        }
        let by = OverrideClient { client, pid: connection.pid, uid: connection.uid };
        let added = self.overrides.add(by, life, text.to_owned(), Instant::now(), shm::realtime_nanos());
        let filter_override = added.map_err(|text| (ControlErrorKind::TooMany, text))?;
        let notes = [self.apply_overrides(), forbidden(&switches, text)];
        Ok((
            filter_override,
            notes.iter().filter(|note| !note.is_empty()).map(String::as_str).collect::<Vec<_>>().join("; "),
        ))
    }

    /// Puts the present filter overrides into force. Returns what clients should know.
    pub(super) fn apply_overrides(&mut self) -> String {
        self.has_ended_overrides = false;
        let overrides = self.overrides.directives();
        let mut notes: Vec<String> = Vec::new();
        for switchable in switches::all() {
            // A filter override is a list, in which a directive may restrict another one. So its directives stay
            // together.
            let of_override = |filter_override: &String| {
                let taken = directives(filter_override).filter(|directive| switchable.takes(directive) == Ok(true));
                taken.collect::<Vec<_>>().join(",")
            };
            let taken: Vec<String> =
                overrides.iter().map(of_override).filter(|filter_override| !filter_override.is_empty()).collect();
            // The change asks the program's own subscribers, whose code may panic. The server goes on.
            let note = catch_unwind(AssertUnwindSafe(|| switchable.set_overrides(&taken))).unwrap_or_default();
            notes.push(note);
        }
        notes.retain(|note| !note.is_empty());
        notes.join("; ")
    }

    /// Takes filter overrides that have ended out of force.
    pub(super) fn end_overrides(&mut self) {
        if self.has_ended_overrides {
            self.apply_overrides();
        }
    }

    fn tell_state(&mut self, connection: &mut Connection, number: u32) -> Result<(), Lost> {
        self.end_overrides();
        let switches = switches::all();
        let joined = |of: &dyn Fn(&dyn Switchable) -> String| {
            let texts: Vec<String> = switches.iter().map(|s| of(&**s)).filter(|text| !text.is_empty()).collect();
            texts.join(",")
        };
        let state = Answer::State {
            configured: joined(&|switch| switch.configured()),
            effective: joined(&|switch| switch.effective()),
        };
        connection.send(number, &state, None)?;
        let overrides = self.overrides.infos();
        let mut domains: Vec<_> = switches.iter().flat_map(|switch| switch.domains()).collect();
        // Several rings may have events of one schema.
        domains.sort();
        domains.dedup();
        let count = (overrides.len() + domains.len()) as u64;
        overrides
            .into_iter()
            .try_for_each(|filter_override| connection.send(number, &Answer::Override(filter_override), None))?;
        domains.into_iter().try_for_each(|domain| connection.send(number, &Answer::Domain(domain), None))?;
        connection.send(number, &Answer::End { count }, None)
    }
}

/// Returns why a user may not do something.
pub(super) fn denied(user: u32, what: &str) -> String {
    format!(
        "user {user} may not {what} process {}, which runs as user {}; expected that user or root; run as one of them, \
         or let the program allow this user (`ServerBuilder::allow_import`, `allow_switch`)",
        std::process::id(),
        rustix::process::geteuid().as_raw(),
    )
}

pub(super) fn refuse(
    connection: &mut Connection,
    number: u32,
    kind: ControlErrorKind,
    text: String,
) -> Result<(), Lost> {
    connection.send(number, &Answer::Refused { kind, text }, None)
}

fn check_content(info: &ServedInfo, content_type: u16, schema_hash: [u8; 32]) -> Result<(), String> {
    if content_type != 0 && content_type != info.content_type {
        return Err(format!(
            "the ring {} has content type {} ({}), expected {content_type}",
            info.name, info.content_type, info.content_name
        ));
    }
    if schema_hash != [0; 32] && schema_hash != info.schema_hash {
        return Err(format!(
            "the ring {} has another schema hash than the expected one: writer and reader were built with different \
             versions of the events",
            info.name
        ));
    }
    Ok(())
}

/// Checks that a part of the program takes a directive.
fn check_directive(switches: &[Arc<dyn Switchable>], directive: &str) -> Result<(), String> {
    let mut is_taken = false;
    let mut fault = None;
    for switch in switches {
        match switch.takes(directive) {
            Ok(takes) => is_taken |= takes,
            Err(text) => fault = Some(text),
        }
    }
    match fault {
        _ if is_taken => Ok(()),
        Some(fault) => Err(fault),
        None if directive.starts_with(DOMAIN) => {
            let mut known: Vec<String> = switches.iter().flat_map(|s| s.domains()).map(|domain| domain.name).collect();
            known.sort();
            known.dedup();
            let name = &directive[DOMAIN.len()..];
            Err(match known.is_empty() {
                true => format!("no such domain: `{name}`; the program has no rings with domains now"),
                false => format!("no such domain: `{name}`, expected one of: {}", known.join(", ")),
            })
        }
        None => Err(format!(
            "nothing in this program takes the directive `{directive}`: it has no filter of spans that can be changed"
        )),
    }
}

/// Returns what a client should know about the domains of its filter override that the configuration forbids, or an
/// empty text.
fn forbidden(switches: &[Arc<dyn Switchable>], filter_override: &str) -> String {
    let all: Vec<SwitchedDomain> = switches.iter().flat_map(|switch| switch.domains()).collect();
    let notes = directives(filter_override).filter_map(|directive| directive.strip_prefix(DOMAIN)).filter_map(|name| {
        let of_rings = || all.iter().filter(|domain| domain.name == name);
        let forbidding = of_rings().filter(|domain| domain.is_forbidden).count();
        let where_to = match forbidding {
            0 => return None,
            count if count == of_rings().count() => "it stays off".to_owned(),
            count => format!("it stays off in {count} of {} rings", of_rings().count()),
        };
        Some(format!(
            "the configuration of the program forbids the domain {name} (`!{name}` in EVENTRING_DOMAINS or in the code): \
             {where_to}"
        ))
    });
    notes.collect::<Vec<_>>().join("; ")
}
