//! Accounts and storage slots that were accessed.

use super::parts::{Number, Text};
use crate::values::{AccountAccess, StorageAccess};
use schemars::JsonSchema;
use serde::Serialize;

/// An account that was accessed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Account")]
pub(super) struct AccountJson<'a> {
    index: u32,
    address: Text<'a>,
    /// That before, as `balance`.
    nonce: Number,
    balance: Number,
    code_hash: Text<'a>,
    /// Null if it was not changed.
    balance_after: Option<Number>,
    nonce_after: Option<Number>,
    storage: Vec<SlotJson<'a>>,
    transient: Vec<SlotJson<'a>>,
}

/// A storage slot that was accessed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Slot")]
struct SlotJson<'a> {
    index: u32,
    key: Text<'a>,
    before: Text<'a>,
    /// Null if it was not changed.
    after: Option<Text<'a>>,
}

pub(super) fn all(accesses: &[AccountAccess]) -> Vec<AccountJson<'_>> {
    accesses.iter().map(one).collect()
}

fn one(access: &AccountAccess) -> AccountJson<'_> {
    let account = &access.account;
    let before = &account.prestate;
    AccountJson {
        index: account.index,
        address: Text(&account.address),
        nonce: before.nonce.into(),
        balance: before.balance.into(),
        code_hash: Text(&before.code_hash),
        balance_after: account.is_balance_modified.then(|| account.modified_balance.into()),
        nonce_after: account.is_nonce_modified.then(|| account.modified_nonce.into()),
        storage: access.storage.iter().map(slot).collect(),
        transient: access.transient.iter().map(slot).collect(),
    }
}

fn slot(slot: &StorageAccess) -> SlotJson<'_> {
    SlotJson {
        index: slot.index,
        key: Text(&slot.key),
        before: Text(&slot.start_value),
        after: slot.modified.then_some(Text(&slot.end_value)),
    }
}
