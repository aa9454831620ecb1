//! A transaction whose events are being read.

use super::numbered::Numbered;
use super::open_accounts::OpenAccounts;
use crate::problem::{Part, Problem};
use crate::values::{AccessListEntry, CallFrame, Log, Receipt, Txn, TxnStart};
use crate::wanted::Wanted;
use eventring::reader::Descriptor;
use eventring::schema::exec::{ExecPayload, TxnAuthListEntry, TxnEvmOutput};

/// A transaction whose events are being read.
#[derive(Debug, Default)]
pub(super) struct OpenTxn {
    start: Option<TxnStart>,
    access_list: Numbered<AccessListEntry>,
    authorization_list: Numbered<TxnAuthListEntry>,
    has_header_end: bool,
    output: Option<TxnEvmOutput>,
    logs: Numbered<Log>,
    call_frames: Numbered<CallFrame>,
    accounts: OpenAccounts,
    has_ended: bool,
    enter_epoch_nanos: Option<u64>,
    exit_epoch_nanos: Option<u64>,
    rejected: Option<u32>,
}

impl OpenTxn {
    /// Takes an event of the transaction. Returns what is wrong with it.
    pub(super) fn take(&mut self, event: &Descriptor, payload: ExecPayload<'_>, wanted: Wanted) -> Option<Problem> {
        let (seqno, nanos) = (event.seqno, event.record_epoch_nanos);
        let duplicate = Problem::Duplicate { seqno };
        let out_of_range = |what, index: u32| Problem::OutOfRange { seqno, what, index: index.into() };
        let once = |is_again: bool| is_again.then_some(duplicate);
        match payload {
            ExecPayload::TxnHeaderStart(view) => {
                let Ok(blob_versioned_hashes) = view.blob_hashes.to_vec() else {
                    return Some(Problem::Malformed { seqno });
                };
                if self.start.is_some() {
                    return Some(duplicate);
                }
                let input = if wanted.input { view.data.as_bytes().to_vec() } else { Vec::new() };
                let (hash, sender, header) = (view.fixed.txn_hash, view.fixed.sender, view.fixed.txn_header);
                self.start = Some(TxnStart { hash, sender, header, input, blob_versioned_hashes });
                None
            }
            ExecPayload::TxnAccessListEntry(view) => {
                let (index, address) = (view.fixed.index, view.fixed.address);
                let Ok(storage_keys) = view.storage_keys.to_vec() else { return Some(Problem::Malformed { seqno }) };
                if self.start.as_ref().is_some_and(|start| index >= start.header.access_list_count) {
                    return Some(out_of_range(Part::AccessList, index));
                }
                let entry = AccessListEntry { index, address, storage_keys };
                once(!self.access_list.push(index.into(), entry))
            }
            ExecPayload::TxnAuthListEntry(entry) => {
                if self.start.as_ref().is_some_and(|start| entry.index >= start.header.auth_list_count) {
                    return Some(out_of_range(Part::AuthorizationList, entry.index));
                }
                once(!self.authorization_list.push(entry.index.into(), entry))
            }
            ExecPayload::TxnHeaderEnd => once(std::mem::replace(&mut self.has_header_end, true)),
            ExecPayload::TxnPerfEvmEnter => once(self.enter_epoch_nanos.replace(nanos).is_some()),
            ExecPayload::TxnPerfEvmExit => once(self.exit_epoch_nanos.replace(nanos).is_some()),
            ExecPayload::TxnEvmOutput(output) => {
                if self.output.is_some() {
                    return Some(duplicate);
                }
                self.output = Some(output);
                None
            }
            ExecPayload::TxnLog(view) => {
                let (index, address) = (view.fixed.index, view.fixed.address);
                let Ok(topics) = view.topics.to_vec() else { return Some(Problem::Malformed { seqno }) };
                if self.output.as_ref().is_some_and(|output| index >= output.log_count) {
                    return Some(out_of_range(Part::Logs, index));
                }
                let log = Log { index, block_index: None, address, topics, data: view.data.as_bytes().to_vec() };
                once(!self.logs.push(index.into(), log))
            }
            ExecPayload::TxnCallFrame(view) => {
                let index = view.fixed.index;
                if self.output.as_ref().is_some_and(|output| index >= output.call_frame_count) {
                    return Some(out_of_range(Part::CallFrames, index));
                }
                let (input, return_value) = (view.input.as_bytes().to_vec(), view.return_value.as_bytes().to_vec());
                let frame = CallFrame { call: view.fixed, input, return_value };
                once(!self.call_frames.push(index.into(), frame))
            }
            ExecPayload::AccountAccessListHeader(header) => self.accounts.begin(seqno, header.entry_count),
            ExecPayload::AccountAccess(account) => self.accounts.add(seqno, account),
            ExecPayload::StorageAccess(slot) => self.accounts.add_storage(seqno, event.content_ext[2], slot),
            ExecPayload::TxnEnd => once(std::mem::replace(&mut self.has_ended, true)),
            ExecPayload::TxnReject(reject) => once(self.rejected.replace(reject.reason).is_some()),
            // Everything else is of the block.
            _ => Some(Problem::Malformed { seqno }),
        }
    }

    /// Reports what is missing of the transaction.
    pub(super) fn check(&self, index: u64, wanted: Wanted, has_header_end: bool, report: &mut impl FnMut(Problem)) {
        let txn = Some(index);
        let mut missing = |what, expected: u64, found: u64| report(Problem::Missing { what, txn, expected, found });
        let mut whole = |is_whole: bool, what, expected: u64, found: u64| {
            if !is_whole {
                missing(what, expected, found);
            }
        };
        whole(self.start.is_some(), Part::TxnStart, 1, 0);
        if has_header_end {
            whole(self.has_header_end, Part::TxnHeaderEnd, 1, 0);
            if let Some(start) = &self.start {
                let (entries, count) = (&self.access_list, start.header.access_list_count.into());
                whole(entries.is_whole(count), Part::AccessList, count, entries.len());
                let (entries, count) = (&self.authorization_list, start.header.auth_list_count.into());
                whole(entries.is_whole(count), Part::AuthorizationList, count, entries.len());
            }
        }
        whole(self.output.is_some(), Part::TxnOutput, 1, 0);
        if let Some(output) = &self.output {
            if wanted.logs {
                let count = output.log_count.into();
                whole(self.logs.is_whole(count), Part::Logs, count, self.logs.len());
            }
            if wanted.call_frames {
                let count = output.call_frame_count.into();
                whole(self.call_frames.is_whole(count), Part::CallFrames, count, self.call_frames.len());
            }
        }
        whole(self.has_ended, Part::TxnEnd, 1, 0);
        if wanted.accesses {
            self.accounts.check(txn, report);
        }
    }

    pub(super) fn finish(self, index: u64, wanted: Wanted) -> Txn {
        let receipt = self.output.map(|output| Receipt {
            status: output.status,
            gas_used: output.gas_used,
            log_count: output.log_count,
            call_frame_count: output.call_frame_count,
            ..Receipt::default()
        });
        Txn {
            index,
            start: self.start,
            access_list: self.access_list.into_entries(),
            authorization_list: self.authorization_list.into_entries(),
            receipt,
            logs: self.logs.into_entries(),
            call_frames: wanted.call_frames.then(|| self.call_frames.into_entries()),
            accesses: wanted.accesses.then(|| self.accounts.finish()),
            enter_epoch_nanos: self.enter_epoch_nanos,
            exit_epoch_nanos: self.exit_epoch_nanos,
            rejected: self.rejected,
        }
    }
}
