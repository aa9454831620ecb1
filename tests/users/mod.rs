//! Threads that act as other users.

/// Makes the calling thread, and only that thread, an unprivileged user of one group. Returns false if that is not
/// permitted.
pub fn become_user(user: u32, group: u32) -> bool {
    let [user, group] = [user, group].map(i64::from);
    // SAFETY: changes the credentials of this thread. The raw call, unlike the libc function of the same name, does not
    // affect the other threads. The list of groups is empty, so the pointer is not read.
    let groups = unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) };
    // SAFETY: as above.
    let gid = unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) };
    // SAFETY: as above.
    let uid = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    (groups, gid, uid) == (0, 0, 0)
}
