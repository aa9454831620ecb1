//! Each rule of the builder alone: what is lost, doubled or malformed has its name and its numbers.

use super::{Input, blocks, build, content, original, renumber};
use eventring::reader::{Gap, GapCause};
use eventring::schema::exec::ExecEvent;
use eventring_exec::{AccountAccess, Block, ChainEvent, Part, Problem, Wanted};
use std::collections::BTreeSet;

/// Returns the events of the first block.
fn of_one_block() -> Vec<Input> {
    let original = original();
    let start = original.iter().find(|(event, _)| event.event_type == ExecEvent::BlockStart as u16).unwrap().0;
    let of_block = original.into_iter().filter(|(event, _)| event.content_ext[0] == start.seqno);
    of_block.map(Input::Event).collect()
}

/// Returns the only block of these events.
fn block_of(inputs: &[Input]) -> Block {
    let mut blocks = blocks(&build(inputs, Wanted::ALL));
    assert_eq!(blocks.len(), 1);
    (*blocks.remove(0)).clone()
}

#[test]
fn a_whole_block_has_each_thing_that_its_events_say() {
    let block = block_of(&of_one_block());
    assert!(block.is_complete && block.transactions.len() == 3);
    let accesses = |accounts: &[AccountAccess]| -> Vec<(u32, usize, usize)> {
        accounts.iter().map(|it| (it.account.index, it.storage.len(), it.transient.len())).collect()
    };
    let expected = [(0, 1, 0), (1, 1, 1)];
    assert_eq!((accesses(&block.prologue), accesses(&block.epilogue)), (expected.into(), expected.into()));
    for (index, txn) in (0..).zip(&block.transactions) {
        let byte = 16 * 7 + index as u8;
        let start = txn.start.as_ref().unwrap();
        assert_eq!((start.header.nonce, start.sender.0, &start.input[..]), (index, [byte; 20], &[byte; 5][..]));
        let entries: Vec<_> =
            txn.access_list.iter().map(|it| (it.index, it.address.0, it.storage_keys.len())).collect();
        assert_eq!(entries, [(0, [byte ^ 1; 20], 1), (1, [byte ^ 1; 20], 1)]);
        assert_eq!(txn.authorization_list.len(), 1);
        let logs: Vec<_> = txn.logs.iter().map(|log| (log.index, log.topics.len(), &log.data[..])).collect();
        assert_eq!(logs, [(0, 2, &[0; 3][..]), (1, 2, &[1; 3])]);
        let frames: Vec<_> = txn.call_frames.iter().flatten().map(|it| (it.call.index, &it.input[..])).collect();
        assert_eq!(frames, [(0, &[byte; 2][..]), (1, &[byte; 2])]);
        assert_eq!(accesses(txn.accesses.as_ref().unwrap()), expected);
        let receipt = txn.receipt.as_ref().unwrap();
        assert_eq!((receipt.status, receipt.cumulative_gas_used), (true, Some(21_000 * (index + 1))));
        assert!(txn.enter_epoch_nanos.is_some() && txn.enter_epoch_nanos < txn.exit_epoch_nanos);
    }
    assert!(block.evm_enter_epoch_nanos.is_some() && block.evm_enter_epoch_nanos < block.evm_exit_epoch_nanos);
    assert!(block.start_epoch_nanos < block.end_epoch_nanos && block.start_seqno < block.end_seqno);
}

#[test]
fn a_gap_is_told_with_its_range_wherever_it_is() {
    let inputs = of_one_block();
    let seqno = |at: usize| match &inputs[at] {
        Input::Event((event, _)) => event.seqno,
        _ => unreachable!(),
    };
    for count in 1..4 {
        for at in 1..inputs.len() - count {
            let range = Problem::Gap { first_seqno: seqno(at), count: count as u64 };
            let gap = Gap { first_seqno: seqno(at), count: count as u64, cause: GapCause::Overwritten };
            let mut silent = inputs.clone();
            silent.drain(at..at + count);
            let mut told = silent.clone();
            told.insert(at, Input::Gap(gap));
            // Readers that begin anew may be told of what they know.
            let mut overlapping = told.clone();
            let (first_seqno, before) = (seqno(0), (at + count) as u64);
            overlapping[at] = Input::Gap(Gap { first_seqno, count: before, cause: GapCause::Overwritten });
            let mut again = told.clone();
            again.insert(at + 1, Input::Gap(gap));
            for lossy in [told, silent, overlapping, again] {
                let block = block_of(&lossy);
                let gaps: Vec<&Problem> =
                    block.problems.iter().filter(|it| matches!(it, Problem::Gap { .. })).collect();
                assert_eq!((block.is_complete, gaps), (false, vec![&range]), "{at}");
            }
        }
    }
}

#[test]
fn the_past_and_seqnos_that_writers_gave_up_are_no_loss_and_an_event_between_them_is() {
    let gap = |first_seqno, count, cause| Input::Gap(Gap { first_seqno, count, cause });
    let moved: Vec<Input> = of_one_block()
        .into_iter()
        .map(|input| match input {
            Input::Event((mut event, payload)) => {
                event.seqno += 100;
                event.content_ext[0] += 100;
                Input::Event((event, payload))
            }
            other => other,
        })
        .collect();
    let Input::Event((start, _)) = &moved[0] else { unreachable!() };
    let problems = |before: &[Input]| {
        let found = build(&[before, &moved].concat(), Wanted::ALL);
        assert!(blocks(&found)[0].is_complete);
        found.into_iter().filter(|found| matches!(found, ChainEvent::Problem(_))).collect::<Vec<_>>()
    };
    let past = gap(1, start.seqno - 1, GapCause::OverwrittenBefore);
    assert_eq!(problems(std::slice::from_ref(&past)), []);
    assert_eq!(problems(&[gap(1, start.seqno - 1, GapCause::Skipped)]), []);
    // The past is only what lies before all that is read.
    let later = [gap(1, 50, GapCause::OverwrittenBefore), gap(51, start.seqno - 51, GapCause::OverwrittenBefore)];
    let lost = |first_seqno, count| ChainEvent::Problem(Problem::Gap { first_seqno, count });
    assert_eq!(problems(&later), [lost(51, start.seqno - 51)]);
    // Seqnos 51 to 60 are in no gap, and no event of them came.
    let between = [gap(1, 50, GapCause::OverwrittenBefore), gap(61, start.seqno - 61, GapCause::Skipped)];
    assert_eq!(problems(&between), [lost(51, 10)]);
}

#[test]
fn an_event_that_is_said_twice_is_told_whatever_it_says() {
    let inputs = of_one_block();
    for at in 1..inputs.len() - 1 {
        let Input::Event((event, _)) = &inputs[at] else { unreachable!() };
        let mut twice = inputs.clone();
        twice.insert(at, twice[at].clone());
        renumber(&mut twice);
        let block = block_of(&twice);
        let is_duplicate = |problem: &Problem| matches!(problem, Problem::Duplicate { .. });
        assert!(block.problems.iter().any(is_duplicate), "event {at} of type {}", event.event_type);
        assert!(!block.is_complete);
    }
}

#[test]
fn an_account_that_was_not_recorded_is_missed_also_if_it_has_no_storage() {
    use eventring::schema::EventPayload as _;
    use eventring::schema::exec::{AccessContext, AccountAccess};
    let account = |index, access_context| AccountAccess { index, access_context, ..AccountAccess::default() };
    let is_slot = |input: &Input| matches!(input, Input::Event((event, _)) if event.event_type == ExecEvent::StorageAccess as u16);
    let mut inputs = of_one_block();
    inputs.retain(|input| !is_slot(input));
    let mut places = Vec::new();
    for (at, input) in inputs.iter_mut().enumerate() {
        let Input::Event((event, payload)) = input else { unreachable!() };
        if event.event_type == ExecEvent::AccountAccess as u16 {
            let (found, _) = AccountAccess::decode(payload).unwrap();
            account(found.index, found.access_context).with_bytes(|bytes| *payload = bytes.to_vec());
            places.push((at, event.content_ext[1].checked_sub(1), found.access_context));
        }
    }
    renumber(&mut inputs);
    assert!(block_of(&inputs).is_complete);
    assert!(places.iter().any(|(.., context)| *context == AccessContext::BlockEpilogue));
    for (at, txn, _) in places {
        let mut less = inputs.clone();
        less.remove(at);
        renumber(&mut less);
        let block = block_of(&less);
        let missing = Problem::Missing { what: Part::Accounts, txn, expected: 2, found: 1 };
        assert!(!block.is_complete && block.problems.contains(&missing), "{at}: {:?}", block.problems);
    }
}

#[test]
fn a_transaction_that_was_not_recorded_is_missed() {
    for txn in 1..=3 {
        let mut inputs = of_one_block();
        inputs.retain(|input| !matches!(input, Input::Event((event, _)) if event.content_ext[1] == txn));
        renumber(&mut inputs);
        let block = block_of(&inputs);
        let missing = Problem::Missing { what: Part::Transactions, txn: None, expected: 3, found: 2 };
        assert!(!block.is_complete && block.problems.contains(&missing), "{txn}: {:?}", block.problems);
    }
}

#[test]
fn an_event_that_comes_once_more_is_told_and_changes_nothing() {
    let inputs = of_one_block();
    let whole = content(&block_of(&inputs));
    for at in 1..inputs.len() - 1 {
        let Input::Event((event, _)) = &inputs[at] else { unreachable!() };
        let mut twice = inputs.clone();
        twice.insert(at, twice[at].clone());
        let block = block_of(&twice);
        assert_eq!(
            (block.problems.clone(), content(&block)),
            (vec![Problem::Duplicate { seqno: event.seqno }], whole.clone())
        );
    }
}

#[test]
fn a_payload_that_ends_early_and_a_start_that_is_not_its_own_are_malformed() {
    let inputs = of_one_block();
    for at in 0..inputs.len() {
        let Input::Event((event, payload)) = &inputs[at] else { unreachable!() };
        if payload.is_empty() {
            continue;
        }
        let mut cut = inputs.clone();
        cut[at] = Input::Event((*event, payload[..payload.len() - 1].to_vec()));
        let found = build(&cut, Wanted::ALL);
        let malformed = Problem::Malformed { seqno: event.seqno };
        let is_told = found.contains(&ChainEvent::Problem(malformed))
            || blocks(&found).iter().any(|block| !block.is_complete && block.problems.contains(&malformed));
        assert!(is_told, "event {at} of type {}: {found:?}", event.event_type);
    }
    // An event of a transaction that does not say of which.
    let is_txn_end =
        |input: &Input| matches!(input, Input::Event((event, _)) if event.event_type == ExecEvent::TxnEnd as u16);
    let end = inputs.iter().position(is_txn_end).unwrap();
    let mut of_none = inputs.clone();
    let Input::Event((event, _)) = &mut of_none[end] else { unreachable!() };
    event.content_ext[1] = 0;
    let malformed = Problem::Malformed { seqno: event.seqno };
    assert!(block_of(&of_none).problems.contains(&malformed));
    let mut other = inputs;
    let Input::Event((start, _)) = &mut other[0] else { unreachable!() };
    start.content_ext[0] += 1;
    let malformed = Problem::Malformed { seqno: start.seqno };
    let found = build(&other, Wanted::ALL);
    assert!(!blocks(&found)[0].is_complete && blocks(&found)[0].problems.contains(&malformed), "{found:?}");
}

#[test]
fn an_event_that_the_node_could_not_record_is_told_in_blocks_and_outside() {
    let mut inputs = of_one_block();
    let Input::Event((start, _)) = inputs[0].clone() else { unreachable!() };
    let dropped_type = ExecEvent::TxnLog as u16;
    let mut error = start;
    error.event_type = ExecEvent::RecordError as u16;
    error.content_ext = [start.seqno, 3, 0, 0];
    let payload = [[2, 0], dropped_type.to_le_bytes()].concat();
    let error = Input::Event((error, [payload, vec![0; 12]].concat()));
    let told = |seqno| Problem::RecordError { seqno, txn: Some(2), dropped_type };
    assert_eq!(build(std::slice::from_ref(&error), Wanted::ALL), [ChainEvent::Problem(told(start.seqno))]);
    // The error stands for an event that was not recorded; here it is one more, so that nothing else is missing.
    inputs.insert(2, error);
    renumber(&mut inputs);
    let block = block_of(&inputs);
    assert_eq!((block.is_complete, block.problems), (false, vec![told(3)]));
    // It may not say of which block it is; then it is of the open one.
    let Input::Event((error, _)) = &mut inputs[2] else { unreachable!() };
    error.content_ext[0] = 0;
    let block = block_of(&inputs);
    assert_eq!((block.is_complete, block.problems), (false, vec![told(3)]));
}

#[test]
fn events_of_a_block_without_its_start_are_told_once_for_each_block() {
    let all: Vec<Input> = original().into_iter().map(Input::Event).collect();
    let is_start = |input: &Input| matches!(input, Input::Event((event, _)) if event.event_type == 2);
    let without: Vec<Input> = all.into_iter().filter(|input| !is_start(input)).collect();
    let of_seqno = |input: &Input| if let Input::Event((event, _)) = input { event.content_ext[0] } else { 0 };
    let tags: BTreeSet<u64> = without.iter().map(of_seqno).filter(|tag| *tag != 0).collect();
    let told: Vec<u64> = build(&without, Wanted::ALL)
        .into_iter()
        .filter_map(|found| match found {
            ChainEvent::Problem(Problem::NoStart { block_seqno, .. }) => Some(block_seqno),
            _ => None,
        })
        .collect();
    assert_eq!((told.len(), told.into_iter().collect()), (2, tags));
    // An event of another block is not one of the open block.
    let mut inputs = of_one_block();
    let Input::Event((event, _)) = &mut inputs[3] else { unreachable!() };
    event.content_ext[0] = 77;
    let block = block_of(&inputs);
    let told = Problem::NoStart { seqno: 4, block_seqno: 77 };
    assert!(!block.is_complete && block.problems.contains(&told), "{:?}", block.problems);
}
