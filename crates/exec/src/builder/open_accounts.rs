//! The accounts that a transaction, or a block outside of its transactions, has accessed.

use super::numbered::Numbered;
use crate::problem::{Part, Problem};
use crate::values::AccountAccess;
use eventring::schema::exec;

/// A list of accounts that is being read.
#[derive(Debug, Default)]
pub(super) struct OpenAccounts {
    /// The number of accounts, as the header says.
    count: Option<u64>,
    accounts: Numbered<OpenAccount>,
}

#[derive(Debug)]
struct OpenAccount {
    account: exec::AccountAccess,
    storage: Numbered<exec::StorageAccess>,
    transient: Numbered<exec::StorageAccess>,
}

impl OpenAccounts {
    /// Takes the header of the list.
    pub(super) fn begin(&mut self, seqno: u64, count: u32) -> Option<Problem> {
        self.count.replace(count.into()).map(|_| Problem::Duplicate { seqno })
    }

    pub(super) fn add(&mut self, seqno: u64, account: exec::AccountAccess) -> Option<Problem> {
        let index = account.index.into();
        if self.count.is_some_and(|count| index >= count) {
            return Some(Problem::OutOfRange { seqno, what: Part::Accounts, index });
        }
        let account = OpenAccount { account, storage: Numbered::default(), transient: Numbered::default() };
        (!self.accounts.push(index, account)).then_some(Problem::Duplicate { seqno })
    }

    /// Adds a storage slot of the account with this index.
    pub(super) fn add_storage(&mut self, seqno: u64, account: u64, slot: exec::StorageAccess) -> Option<Problem> {
        // It is the last account, unless events are out of order.
        let found = self.accounts.iter_mut().rev().find(|open| u64::from(open.account.index) == account);
        let Some(open) = found else {
            return Some(Problem::OutOfRange { seqno, what: Part::Accounts, index: account });
        };
        let (slots, count) = match slot.transient {
            false => (&mut open.storage, open.account.storage_key_count),
            true => (&mut open.transient, open.account.transient_count),
        };
        if slot.index >= count {
            return Some(Problem::OutOfRange { seqno, what: Part::Storage, index: slot.index.into() });
        }
        (!slots.push(slot.index.into(), slot)).then_some(Problem::Duplicate { seqno })
    }

    /// Reports what is missing.
    pub(super) fn check(&self, txn: Option<u64>, report: &mut impl FnMut(Problem)) {
        let mut missing = |what, expected, found| report(Problem::Missing { what, txn, expected, found });
        match self.count {
            None => missing(Part::AccessHeader, 1, 0),
            Some(count) if !self.accounts.is_whole(count) => missing(Part::Accounts, count, self.accounts.len()),
            Some(_) => {}
        }
        for OpenAccount { account, storage, transient } in self.accounts.iter() {
            for (slots, count) in [(storage, account.storage_key_count), (transient, account.transient_count)] {
                if !slots.is_whole(count.into()) {
                    missing(Part::Storage, count.into(), slots.len());
                }
            }
        }
    }

    pub(super) fn finish(self) -> Vec<AccountAccess> {
        let finish = |OpenAccount { account, storage, transient }| AccountAccess {
            account,
            storage: storage.into_entries(),
            transient: transient.into_entries(),
        };
        self.accounts.into_entries().into_iter().map(finish).collect()
    }
}
