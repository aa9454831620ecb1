//! The thread of a server. It sleeps until a client connects, sends a message or ends, a filter override ends, or the
//! list of files changes.
//!
//! The thread's work is bounded: in each round it handles only some messages of each client, and after much work it
//! pauses. So clients that flood the server slow down each other, not the program. Clients of the program's user and of
//! root have priority.

use super::answers::{ServerState, denied, refuse};
use super::connection::{Connection, Lost};
use super::effort::Effort;
use super::given_up::GivenUp;
use crate::control::error::ControlErrorKind;
use crate::control::filter_overrides::FilterOverrides;
use crate::control::served::{Export, ServedFiles};
use crate::control::shares;
use crate::control::socket::{self, Packet, Tried};
use crate::control::wire::{Answer, ClientRequest, MESSAGE_BYTES_MAX, ServedInfo, WireFault, WireMessage};
use crate::shm::{UninheritedFd, process_and_user};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LISTENER: u64 = 0;
const STOP: u64 = 1;
const FILES: u64 = 2;
const FIRST_CLIENT: u64 = 16;
/// The bit of the numbers by which the ends of client processes are known.
const PROCESS: u64 = 1 << 63;

/// The largest number of messages of one client, and of new connections, in one round.
const ROUND_MAX: usize = 16;
/// The shortest pause after a round with more work than that.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
/// The time that a new client has for its first message.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);
/// The priority of the thread: that of background work.
const NICE: i32 = 10;

/// The users who may do something, besides the user of this process and root.
#[derive(Default, Debug)]
pub(super) struct Rights {
    pub(super) import: Vec<u32>,
    pub(super) switch: Vec<u32>,
}

/// The state of the thread.
pub(super) struct Serving {
    epoll: UninheritedFd,
    listener: UninheritedFd,
    /// The descriptor stays open as long as the thread waits for it.
    _stop: Arc<UninheritedFd>,
    files_changed: Arc<UninheritedFd>,
    /// The files that clients know of.
    told: Vec<ServedInfo>,
    /// The places of files that only this server serves.
    _exports: Vec<Export>,
    rights: Rights,
    clients_max: usize,
    clients: BTreeMap<u64, Connection>,
    /// Connections that serve nothing any more, and have their places.
    given_up: GivenUp,
    next_client: u64,
    /// The number from which on clients have their turn.
    turn: u64,
    effort: Effort,
    state: ServerState,
    buffer: Vec<u8>,
}

impl Serving {
    pub(super) fn new(
        listener: UninheritedFd,
        stop: Arc<UninheritedFd>,
        files: Arc<ServedFiles>,
        exports: Vec<Export>,
        rights: Rights,
        clients_max: usize,
        program: String,
    ) -> Result<Self, std::io::Error> {
        let epoll = UninheritedFd::make(|| epoll::create(epoll::CreateFlags::CLOEXEC))?;
        let files_changed = files.waker()?;
        let told = files.infos();
        for (number, source) in [(LISTENER, &listener), (STOP, &*stop), (FILES, &*files_changed)] {
            epoll::add(&epoll, source, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
        }
        Ok(Self {
            epoll,
            listener,
            _stop: stop,
            files_changed,
            told,
            _exports: exports,
            rights,
            clients_max,
            clients: BTreeMap::new(),
            given_up: GivenUp::default(),
            next_client: FIRST_CLIENT,
            turn: FIRST_CLIENT,
            effort: Effort::begin(),
            state: ServerState {
                files,
                overrides: FilterOverrides::default(),
                has_ended_overrides: false,
                program,
                greeted: 0,
            },
            buffer: vec![0; MESSAGE_BYTES_MAX],
        })
    }

    /// Serves until it is told to stop.
    pub(super) fn run(mut self) {
        let thread = rustix::thread::gettid();
        // Only this thread gets the lower priority. Without permission, it keeps its own.
        let _ = rustix::process::setpriority_process(Some(thread), NICE);
        let mut events = Vec::with_capacity(ROUND_MAX * 4);
        self.effort = Effort::begin();
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), self.timeout().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // The program has closed the descriptor.
                Err(_) => break,
            }
            // The kernel names all again that have not had their turn.
            events.sort_by_cached_key(|event| self.place_in_turn(event.data.u64()));
            let mut is_busy = false;
            for event in &events {
                let (number, flags) = (event.data.u64(), event.flags);
                match number {
                    LISTENER => is_busy |= self.accept(),
                    STOP => return self.end(),
                    FILES => self.tell_files(),
                    _ if number & PROCESS != 0 => self.drop_client(number & !PROCESS),
                    // An end frees a place, so it does not wait.
                    _ if !self.effort.has_time() => {
                        if flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                            self.drop_client(number);
                        }
                    }
                    _ => is_busy |= self.serve(number, flags),
                }
            }
            self.end_overdue();
            self.send_again();
            self.given_up.look_in_time();
            self.state.end_overrides();
            let pause = self.effort.pause().max(if is_busy { BUSY_PAUSE } else { Duration::ZERO });
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
        self.end();
    }

    /// Ends all filter overrides and connections.
    fn end(mut self) {
        self.state.overrides = FilterOverrides::default();
        self.state.apply_overrides();
        self.state.files.forget(&self.files_changed);
    }

    /// Returns how long the thread may sleep.
    fn timeout(&self) -> Option<Timespec> {
        let greetings = self.clients.values().filter(|client| !client.has_greeted);
        let greetings = greetings.map(|client| client.since + GREETING_TIMEOUT);
        let tries = self.clients.values().filter_map(|client| client.next_try);
        let next =
            greetings.chain(tries).chain(self.given_up.next_look).chain(self.state.overrides.next_end()).min()?;
        // A millisecond more, so that the time is over when the thread wakes.
        let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        Timespec::try_from(left.min(Duration::from_secs(3600))).ok()
    }

    /// Returns by what the sources of events are sorted: the listener is last, so that it takes no time from clients.
    fn place_in_turn(&self, number: u64) -> (bool, bool, u64) {
        let client = number & !PROCESS;
        let is_other = self.clients.get(&client).is_some_and(|client| !shares::is_own(client.uid));
        (number == LISTENER, is_other, client.wrapping_sub(self.turn))
    }

    /// Accepts connections. Returns true if there may be more.
    fn accept(&mut self) -> bool {
        for _ in 0..ROUND_MAX {
            match socket::accept(&self.listener) {
                Tried::Done(socket) => self.welcome(socket),
                Tried::NotNow => return false,
                Tried::Gone => return true,
            }
        }
        true
    }

    fn welcome(&mut self, socket: UninheritedFd) {
        let Ok((pid, uid)) = process_and_user(&socket) else { return };
        let mut connection = Connection::new(socket, pid, uid);
        connection.may_switch = shares::is_own(uid) || self.rights.switch.contains(&uid);
        let may_import = connection.may_switch || self.rights.import.contains(&uid);
        self.given_up.look();
        let users = self.clients.values().map(|client| client.uid).chain(self.given_up.users());
        let refusal = match may_import {
            false => Some((ControlErrorKind::PermissionDenied, denied(uid, "read the rings of"))),
            true => {
                let users = users.map(|user| (user, 1));
                let refusal = shares::refusal("clients", self.clients_max, users, uid, 1);
                refusal.map(|text| (ControlErrorKind::TooMany, text))
            }
        };
        if let Some((kind, text)) = refusal {
            // The connection ends here, so it holds nothing.
            let _ = refuse(&mut connection, 0, kind, text);
            return;
        }
        connection.watch_process();
        let number = self.next_client;
        self.next_client += 1;
        let data = epoll::EventData::new_u64(number);
        if epoll::add(&self.epoll, &connection.socket, data, epoll::EventFlags::IN).is_err() {
            return;
        }
        if let Some(process) = &connection.process {
            let data = epoll::EventData::new_u64(number | PROCESS);
            let _ = epoll::add(&self.epoll, process, data, epoll::EventFlags::IN);
        }
        self.clients.insert(number, connection);
    }

    /// Answers messages of a client. Returns true if there may be more.
    fn serve(&mut self, number: u64, flags: epoll::EventFlags) -> bool {
        let Some(client) = self.clients.get_mut(&number) else { return false };
        self.turn = number + 1;
        // The kernel goes on to tell of an end, also if no requests are waited for.
        let has_ended = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) && client.next_try.is_some();
        let mut served = || {
            for _ in 0..ROUND_MAX {
                // A client that does not take its answers gets no more of them.
                let Some(packet) = (if client.next_try.is_some() { None } else { client.receive(&mut self.buffer)? })
                else {
                    return Ok(false);
                };
                answer(&mut self.state, number, client, &packet)?;
                if !self.effort.has_time() {
                    break;
                }
            }
            Ok(true)
        };
        match if has_ended { Err(Lost) } else { served() } {
            Ok(may_have_more) => {
                self.await_requests(number);
                may_have_more
            }
            Err(Lost) => {
                self.drop_client(number);
                false
            }
        }
    }

    /// Sends kept messages whose time has come.
    fn send_again(&mut self) {
        let now = Instant::now();
        let due = self.clients.iter_mut().filter(|(_, client)| client.next_try.is_some_and(|time| time <= now));
        let sent: Vec<(u64, bool)> = due.map(|(number, client)| (*number, client.flush().is_ok())).collect();
        for (number, is_there) in sent {
            if is_there { self.await_requests(number) } else { self.drop_client(number) }
        }
    }

    /// Tells the kernel whether requests of the client are waited for: not if it has answers to take.
    fn await_requests(&self, number: u64) {
        let Some(client) = self.clients.get(&number) else { return };
        let flags = if client.next_try.is_some() { epoll::EventFlags::empty() } else { epoll::EventFlags::IN };
        let _ = epoll::modify(&self.epoll, &client.socket, epoll::EventData::new_u64(number), flags);
    }

    /// Forgets a client, and ends its filter overrides. Its place is free when it has taken what was sent.
    fn drop_client(&mut self, number: u64) {
        let Some(client) = self.clients.remove(&number) else { return };
        self.state.greeted -= u32::from(client.has_greeted);
        self.state.has_ended_overrides |= self.state.overrides.end_client(number);
        let user = client.uid;
        if let Some(socket) = client.end() {
            // The kernel would tell of its end without end.
            let _ = epoll::delete(&self.epoll, &socket);
            self.given_up.keep(socket, user);
        }
    }

    /// Ends what has waited too long: filter overrides whose time is over, and clients without a first message.
    fn end_overdue(&mut self) {
        let now = Instant::now();
        self.state.has_ended_overrides |= self.state.overrides.end_expired(now);
        let is_late = |client: &Connection| !client.has_greeted && now >= client.since + GREETING_TIMEOUT;
        let late = self.clients.iter().filter(|(_, client)| is_late(client));
        let late: Vec<u64> = late.map(|(number, _)| *number).collect();
        late.into_iter().for_each(|number| self.drop_client(number));
    }

    /// Tells clients of files that came or went since the last time. New switches get the filter overrides.
    fn tell_files(&mut self) {
        let _ = rustix::io::read(&self.files_changed, &mut [0_u8; 8]);
        self.state.apply_overrides();
        let now = self.state.files.infos();
        let is_in = |files: &[ServedInfo], id: u64| files.iter().any(|file| file.id == id);
        let removed = self.told.iter().filter(|file| !is_in(&now, file.id)).map(|file| Answer::Removed { id: file.id });
        let added = now.iter().filter(|file| !is_in(&self.told, file.id)).map(|file| Answer::Added(file.clone()));
        let changes: Vec<Answer> = removed.chain(added).collect();
        self.told = now;
        let followers = self.clients.iter_mut().filter(|(_, client)| client.follows);
        let mut lost = Vec::new();
        let mut told = Vec::new();
        for (number, client) in followers {
            let sent = changes.iter().try_for_each(|change| client.send(0, change, None));
            if sent.is_err() { lost.push(*number) } else { told.push(*number) }
        }
        lost.into_iter().for_each(|number| self.drop_client(number));
        told.into_iter().for_each(|number| self.await_requests(number));
    }
}

/// Answers a packet of a client. A packet that is no request ends the connection, after a refusal.
fn answer(state: &mut ServerState, number: u64, client: &mut Connection, packet: &Packet) -> Result<(), Lost> {
    let decoded = if packet.is_too_long { Err(WireFault::TooLong) } else { ClientRequest::decode(&packet.bytes) };
    match decoded {
        Ok((request_number, request)) => state.answer(number, client, request_number, request),
        Err(fault) => {
            let _ = refuse(client, 0, ControlErrorKind::BadMessage, fault.to_string());
            Err(Lost)
        }
    }
}
