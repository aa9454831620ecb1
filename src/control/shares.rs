//! The shares of users in a server's resources, such as connections. The program's user and root may use all of a
//! resource. All other users together get at most half of it, and each of them at most a quarter.

/// Returns true if this user is that of the program, or root.
pub(super) fn is_own(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Returns why this user may not have `more` of the server's `max` things, if that is so. `held` has users, and how
/// many of the things each of them has.
pub(super) fn refusal(
    what: &str,
    max: usize,
    held: impl Iterator<Item = (u32, usize)>,
    user: u32,
    more: usize,
) -> Option<String> {
    let (mut of_all, mut of_others, mut of_user) = (0, 0, 0);
    for (holder, count) in held {
        of_all += count;
        of_others += if is_own(holder) { 0 } else { count };
        of_user += if holder == user { count } else { 0 };
    }
    if of_all + more > max {
        return Some(format!(
            "the server has {of_all} {what}, and room for at most {max}: {more} more are too many; try again later"
        ));
    }
    let (others_max, one_max) = (max.div_ceil(2), max.div_ceil(4));
    let is_within = of_others + more <= others_max && of_user + more <= one_max;
    (!is_own(user) && !is_within).then(|| {
        format!(
            "the server has at most {max} {what}: {one_max} of them may be of one other user, and {others_max} of all \
             others than the user of the program and root; try again later"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_users_have_half_and_one_of_them_a_quarter() {
        let own = rustix::process::geteuid().as_raw();
        let of = |counts: &[(usize, u32)], user| {
            refusal("filter overrides", 8, counts.iter().map(|(count, user)| (*user, *count)), user, 1)
        };
        let (one, two, three) = (own + 1, own + 2, own + 3);
        assert_eq!(of(&[(1, one)], one), None);
        assert!(of(&[(2, one)], one).is_some_and(|text| text.contains("2 of them may be of one other user, and 4 of")));
        assert!(of(&[(2, one), (2, two)], three).is_some());
        assert_eq!(of(&[(2, one), (2, two), (3, own)], 0), None);
        assert_eq!(of(&[(7, own)], one), None);
        assert!(
            of(&[(8, own)], own)
                .is_some_and(|text| text.contains("8 filter overrides, and room for at most 8: 1 more"))
        );
        assert_eq!(refusal("clients", 1, std::iter::empty(), one, 1), None);
        // A larger filter override counts for more.
        let bytes = |user, more| refusal("bytes", 800, [(one, 150), (own, 100)].into_iter(), user, more);
        assert!(bytes(one, 50).is_none() && bytes(one, 51).is_some());
        assert!(bytes(two, 200).is_none() && bytes(two, 201).is_some());
        assert!(bytes(own, 550).is_none() && bytes(own, 551).is_some());
    }
}
