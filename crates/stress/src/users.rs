//! Threads that act as other users.

/// Makes the calling thread an unprivileged user who is in one group only. The other threads keep their user. Returns
/// false if the system does not permit the change.
pub fn become_user(user: u32, group: u32) -> bool {
    let [user, group] = [user, group].map(i64::from);
    // SAFETY: the calls change the credentials of this thread. They are raw system calls: the libc functions of these
    // names would change all threads. The list of groups is empty, so the kernel does not read the null pointer.
    let groups = unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) };
    // SAFETY: as above.
    let gid = unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) };
    // SAFETY: as above.
    let uid = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    (groups, gid, uid) == (0, 0, 0)
}

/// Returns true if this process may play other users. If not, says that the test is skipped.
pub fn can_be_played() -> bool {
    // SAFETY: the call only returns a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        crate::missing("only root can play other users");
    }
    is_root
}
