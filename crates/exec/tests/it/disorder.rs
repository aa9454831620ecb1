//! Events that are lost, doubled, out of order, of other blocks or damaged: nothing panics, no block is called complete
//! that is not what was executed, and what is wrong is named.

mod rules;

use crate::{Event, events, kept};
use eventring::reader::{Gap, GapCause, PayloadRead};
use eventring::schema::exec::ExecEvent;
use eventring_exec::{Block, BlockBuilder, ChainEvent, Dialect, Outcome, Problem, Wanted};
use eventring_stress::chain::Made;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the events of two blocks that take part in everything.
fn original() -> Vec<Event> {
    let mut made = Made::default();
    for (number, id) in [(7, 1), (8, 2)] {
        let tag = made.block(number, id, 3);
        made.vote(tag);
        made.finalize(tag);
        made.verify(number);
    }
    made.0
}

/// Pseudo-random numbers, the same in each run (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

/// What a builder is given.
#[derive(Clone)]
enum Input {
    Event(Event),
    Expired(Event),
    Malformed(Event),
    Gap(Gap),
    Restart,
}

fn build(inputs: &[Input], wanted: Wanted) -> Vec<ChainEvent> {
    let mut builder = BlockBuilder::new(Dialect::TODAY, wanted);
    let mut found = Vec::new();
    for input in inputs {
        match input {
            Input::Event((event, payload)) => builder.push(event, || PayloadRead::Valid(payload)),
            Input::Expired((event, _)) => builder.push(event, || PayloadRead::Expired),
            Input::Malformed((event, _)) => builder.push(event, || PayloadRead::Malformed),
            Input::Gap(gap) => builder.push_gap(*gap),
            Input::Restart => builder.next_ring(),
        }
        found.extend(std::iter::from_fn(|| builder.pop()));
    }
    builder.end();
    found.extend(std::iter::from_fn(|| builder.pop()));
    found
}

fn blocks(found: &[ChainEvent]) -> Vec<Arc<Block>> {
    let block = |found: &ChainEvent| if let ChainEvent::Block(block) = found { Some(block.clone()) } else { None };
    found.iter().filter_map(block).collect()
}

/// Returns what a block says, without where and when its events were recorded.
fn content(block: &Block) -> Block {
    let mut content = Block {
        start_seqno: 0,
        end_seqno: 0,
        start_epoch_nanos: 0,
        end_epoch_nanos: 0,
        evm_enter_epoch_nanos: None,
        evm_exit_epoch_nanos: None,
        is_reexecution: false,
        problems: Vec::new(),
        ..block.clone()
    };
    for txn in &mut content.transactions {
        (txn.enter_epoch_nanos, txn.exit_epoch_nanos) = (None, None);
    }
    content
}

/// Returns the names of what is wrong.
fn kinds(found: &[ChainEvent]) -> BTreeSet<&'static str> {
    let outside = found.iter().filter_map(|found| if let ChainEvent::Problem(it) = found { Some(*it) } else { None });
    let inside = blocks(found).into_iter().flat_map(|block| block.problems.clone());
    outside.chain(inside).map(|problem| problem.kind()).collect()
}

/// Gives the events seqnos without gaps, as if nothing had been lost, and blocks the flow tags that follow from these.
fn renumber(inputs: &mut [Input]) {
    let (mut next, mut tags) = (1, BTreeMap::new());
    for input in inputs {
        match input {
            Input::Event((event, _)) | Input::Expired((event, _)) | Input::Malformed((event, _)) => {
                if event.event_type == ExecEvent::BlockStart as u16 {
                    tags.insert(event.content_ext[0], next);
                }
                event.seqno = next;
                if let Some(tag) = tags.get(&event.content_ext[0]) {
                    event.content_ext[0] = *tag;
                }
                next += 1;
            }
            Input::Gap(gap) => {
                gap.first_seqno = next;
                next += gap.count;
            }
            Input::Restart => (next, tags) = (1, BTreeMap::new()),
        }
    }
}

/// Changes something. Returns false if it changed nothing that a block says.
fn mutate(inputs: &mut Vec<Input>, dice: &mut Dice) -> bool {
    let at = dice.below(inputs.len());
    let Input::Event((event, payload)) = inputs[at].clone() else { return false };
    let is_mark = [4, 5, 15, 16].contains(&event.event_type);
    match dice.below(9) {
        0 => _ = inputs.remove(at),
        1 => inputs.insert(at, inputs[at].clone()),
        2 => {
            let other = dice.below(inputs.len());
            // Two starts that change places are two other blocks, if nothing else tells.
            let is_start = |input: &Input| matches!(input, Input::Event((event, _)) if event.event_type == 2);
            if is_start(&inputs[at]) && is_start(&inputs[other]) {
                return false;
            }
            inputs.swap(at, other);
        }
        3 => inputs[at] = Input::Expired((event, payload)),
        4 => inputs[at] = Input::Gap(Gap { first_seqno: event.seqno, count: 1, cause: GapCause::Overwritten }),
        5 => {
            let mut error = event;
            error.event_type = 1;
            let mut text = vec![2, 0];
            text.extend(event.event_type.to_le_bytes());
            text.extend([0; 12]);
            inputs[at] = Input::Event((error, [text, payload].concat()));
        }
        6 => {
            let mut unknown = event;
            unknown.event_type = 25 + dice.below(1000) as u16;
            inputs[at] = Input::Event((unknown, payload));
        }
        7 => {
            // Another block, or transaction.
            let mut stray = event;
            stray.content_ext[dice.below(2)] = dice.below(9) as u64;
            inputs[at] = Input::Event((stray, payload));
        }
        _ => {
            let mut cut = payload.clone();
            cut.truncate(dice.below(payload.len() + 1));
            let is_whole = cut.len() == payload.len();
            inputs[at] = Input::Event((event, cut));
            return !is_whole;
        }
    }
    !is_mark
}

#[test]
fn whatever_happens_to_the_events_no_block_is_called_complete_that_is_not() {
    let rounds = std::env::var("EVENTRING_MUTATIONS").map_or(20_000, |text| text.parse().unwrap());
    let original: Vec<Input> = original().into_iter().map(Input::Event).collect();
    let truth = blocks(&build(&original, Wanted::ALL));
    assert!(truth.len() == 2 && truth.iter().all(|block| block.is_complete), "{truth:?}");
    let known: BTreeMap<_, _> = truth.iter().map(|block| (block.tag().id.0, content(block))).collect();
    let mut named: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (mut complete, mut incomplete) = (0_u64, 0_u64);
    let mut dice = Dice(88_172_645_463_325_252);
    for round in 0..rounds {
        let mut inputs = original.clone();
        let is_changed = (0..1 + dice.below(3)).fold(false, |changed, _| mutate(&mut inputs, &mut dice) || changed);
        match dice.below(4) {
            // The losses do not show in the seqnos: only what the events say is left.
            0 | 1 => renumber(&mut inputs),
            2 => {
                let at = dice.below(inputs.len());
                let again = inputs.clone();
                inputs.truncate(at);
                inputs.push(Input::Restart);
                inputs.extend(again);
            }
            _ => {}
        }
        let wanted = [Wanted::ALL, Wanted::TRANSACTIONS, Wanted::HEADERS][dice.below(3)];
        let found = build(&inputs, wanted);
        for block in blocks(&found) {
            (complete, incomplete) =
                (complete + u64::from(block.is_complete), incomplete + u64::from(!block.is_complete));
            assert!(block.is_complete || !block.problems.is_empty(), "round {round}: {block:?}");
            if block.is_complete && wanted == Wanted::ALL {
                assert_eq!(content(&block), known[&block.tag().id.0], "round {round}");
            }
        }
        let kinds = kinds(&found);
        let are_whole = blocks(&found).iter().filter(|block| block.is_complete).count() >= known.len();
        assert!(
            !is_changed || wanted != Wanted::ALL || are_whole || !kinds.is_empty(),
            "round {round}: nothing is named"
        );
        kinds.into_iter().for_each(|kind| *named.entry(kind).or_default() += 1);
    }
    println!("eventring: rounds={rounds} complete={complete} incomplete={incomplete} named={named:?}");
    let expected = [
        "duplicate",
        "expired",
        "gap",
        "malformed",
        "missing",
        "no_start",
        "out_of_range",
        "record_error",
        "reexecuted",
        "unknown",
    ];
    assert!(expected.iter().all(|kind| named.contains_key(kind)), "{named:?}");
    assert!(complete > 0 && incomplete > 0);
}

/// Control: if the builder did not look for what is missing, the test above would fail.
#[test]
fn each_event_of_a_block_is_missed() {
    let original = original();
    let start = original.iter().position(|(event, _)| event.event_type == ExecEvent::BlockStart as u16).unwrap();
    let tag = original[start].0.seqno;
    let of_block: Vec<&Event> = original.iter().filter(|(event, _)| event.content_ext[0] == tag).collect();
    let whole = blocks(&build(&of_block.iter().map(|it| Input::Event((*it).clone())).collect::<Vec<_>>(), Wanted::ALL));
    assert!(whole[0].is_complete && whole[0].problems.is_empty(), "{:?}", whole[0].problems);
    for left_out in 1..of_block.len() {
        let kind = of_block[left_out].0.event_type;
        let rest = of_block.iter().enumerate().filter(|(at, _)| *at != left_out);
        let mut inputs: Vec<Input> = rest.map(|(_, event)| Input::Event((*event).clone())).collect();
        renumber(&mut inputs);
        let found = blocks(&build(&inputs, Wanted::ALL));
        let is_mark = [4, 5, 15, 16].contains(&kind);
        assert_eq!(found[0].is_complete, is_mark, "event {left_out} of type {kind}");
        let is_named = |it: &Problem| matches!(it, Problem::Missing { .. } | Problem::OutOfRange { .. });
        assert!(is_mark || found[0].problems.iter().any(is_named), "{:?}", found[0].problems);
    }
}

#[test]
fn a_block_that_is_rejected_or_fails_says_why_and_a_new_start_ends_the_one_before() {
    let original = events(&kept());
    let is_start = |(event, _): &&Event| event.event_type == ExecEvent::BlockStart as u16;
    let start = original.iter().find(is_start).unwrap().clone();
    let tag = start.0.seqno;
    let event = |seqno: u64, kind: ExecEvent, txn: u64, payload: &[u8]| {
        let mut event = start.0;
        (event.seqno, event.event_type, event.content_ext) = (seqno, kind as u16, [tag, txn, 0, 0]);
        Input::Event((event, payload.to_vec()))
    };
    let error = [7_u64.to_le_bytes(), (-3_i64).to_le_bytes()].concat();
    let begin = Input::Event(start.clone());
    let reject = [begin.clone(), event(tag + 1, ExecEvent::BlockReject, 0, &13_u32.to_le_bytes())];
    let rejected = blocks(&build(&reject, Wanted::ALL)).remove(0);
    assert_eq!((rejected.outcome.clone(), rejected.is_complete), (Outcome::Rejected { reason: 13 }, false));
    assert_eq!(rejected.problems[0].to_string(), "the block is invalid: reason 13 (WrongLogsBloom)");
    let failing = [
        begin.clone(),
        event(tag + 1, ExecEvent::TxnReject, 1, &3_u32.to_le_bytes()),
        event(tag + 2, ExecEvent::EvmError, 0, &error),
    ];
    let failed = blocks(&build(&failing, Wanted::ALL)).remove(0);
    assert_eq!(failed.outcome, Outcome::Failed { domain: 7, status: -3 });
    let texts: Vec<String> = failed.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["transaction 0 is invalid: reason 3 (BadNonce)", "the execution failed: status -3 of domain 7",]
    );
    assert_eq!(failed.transactions[0].rejected, Some(3));
    // A number that nobody knows is no error.
    let strange = [begin.clone(), event(tag + 1, ExecEvent::BlockReject, 0, &999_u32.to_le_bytes())];
    assert!(blocks(&build(&strange, Wanted::ALL))[0].problems[0].to_string().contains("reason 999 (unknown)"));

    let mut second = start;
    second.0.seqno = tag + 1;
    second.0.content_ext[0] = tag + 1;
    let both = blocks(&build(&[begin, Input::Event(second)], Wanted::HEADERS));
    assert_eq!((both.len(), both[0].is_complete, both[1].is_reexecution), (2, false, true));
}

#[test]
fn a_block_that_says_it_has_more_than_there_can_be_takes_no_more_memory_than_it_may() {
    let original = events(&kept());
    let mut inputs = Vec::new();
    for (event, payload) in &original {
        let mut payload = payload.clone();
        if event.event_type == ExecEvent::BlockStart as u16 {
            payload[448..456].fill(0xff);
        }
        let mut event = *event;
        if event.content_ext[1] != 0 {
            event.content_ext[1] = u64::MAX - event.content_ext[1];
        }
        inputs.push(Input::Event((event, payload)));
    }
    let found = build(&inputs, Wanted::ALL);
    assert!(kinds(&found).contains("out_of_range"));
    assert!(blocks(&found).iter().all(|block| !block.is_complete && block.transactions.is_empty()));
    let mut builder = BlockBuilder::new(Dialect::TODAY, Wanted::ALL).bytes_max(1000);
    for (event, payload) in &original {
        builder.push(event, || PayloadRead::Valid(payload));
    }
    let found: Vec<ChainEvent> = std::iter::from_fn(|| builder.pop()).collect();
    assert!(kinds(&found).contains("too_large") && blocks(&found).iter().all(|block| !block.is_complete));
}

#[test]
fn a_payload_that_the_ring_cannot_have_is_damaged_and_not_expired() {
    for at in 0..original().len() {
        let damaged = |make: fn(Event) -> Input| {
            let event = |(index, event): (usize, Event)| if index == at { make(event) } else { Input::Event(event) };
            kinds(&build(&original().into_iter().enumerate().map(event).collect::<Vec<_>>(), Wanted::ALL))
        };
        let (malformed, expired) = (damaged(Input::Malformed), damaged(Input::Expired));
        assert!(!malformed.contains("expired"), "{at}: {malformed:?}");
        // The control: the same event with a payload that was overwritten, if it is read at all.
        assert_eq!(malformed.contains("malformed"), expired.contains("expired"), "{at}: {malformed:?} {expired:?}");
    }
}
