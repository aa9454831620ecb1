//! The shares of users in what a server has, such as places for clients. Other users than that of the program and root
//! have half of it, and one of them a quarter, so that they cannot keep the program's user and root out.

/// Returns true if this user is that of the program, or root.
pub(super) fn is_own(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Returns why this user may not have one more of the server's `max` things, if that is so. `holders` has the user of
/// each thing that is taken.
pub(super) fn refusal(what: &str, max: usize, holders: impl Iterator<Item = u32> + Clone, user: u32) -> Option<String> {
    if holders.clone().count() >= max {
        return Some(format!("the server has {max} {what}, which is its limit; try again later"));
    }
    let (of_others, of_one) = (max.div_ceil(2), max.div_ceil(4));
    let others = holders.filter(|holder| !is_own(*holder));
    let is_within = others.clone().count() < of_others && others.filter(|holder| *holder == user).count() < of_one;
    (!is_own(user) && !is_within).then(|| {
        format!(
            "the server has at most {max} {what}: {of_one} of them may be of one other user, and {of_others} of all \
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
            let holders: Vec<u32> = counts.iter().flat_map(|(count, user)| vec![*user; *count]).collect();
            refusal("wishes", 8, holders.into_iter(), user)
        };
        let (one, two, three) = (own + 1, own + 2, own + 3);
        assert_eq!(of(&[(1, one)], one), None);
        assert!(of(&[(2, one)], one).is_some_and(|text| text.contains("2 of them may be of one other user, and 4 of")));
        assert!(of(&[(2, one), (2, two)], three).is_some());
        assert_eq!(of(&[(2, one), (2, two), (3, own)], 0), None);
        assert_eq!(of(&[(7, own)], one), None);
        assert!(of(&[(8, own)], own).is_some_and(|text| text.contains("8 wishes, which is its limit")));
        assert_eq!(refusal("clients", 1, std::iter::empty(), one), None);
    }
}
