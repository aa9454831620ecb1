//! Accounts that were accessed.

use eventring::schema::exec;

/// An account that was accessed, before and after.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AccountAccess {
    /// The account. `modified_balance` and `modified_nonce` hold only if `is_balance_modified` and `is_nonce_modified`
    /// say so.
    pub account: exec::AccountAccess,
    /// The storage slots that were accessed, by their index.
    pub storage: Vec<StorageAccess>,
    /// The transient storage slots that were accessed, by their index.
    pub transient: Vec<StorageAccess>,
}

/// A storage slot that was accessed. `end_value` holds only if `modified` says so.
pub type StorageAccess = exec::StorageAccess;
