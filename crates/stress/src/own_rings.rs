//! Protection of the user's ring directory, where rings of running services may be. Tests must not make rings there.
//!
//! A ring name without `/` is a name in the ring directory. Before `main`, each program that links this crate sets the
//! ring directory to a path where nobody can make a file. A test that needs names without `/` must start a child
//! process with another `EVENTRING_DIR`.

/// The ring directory of all programs that are tests or were started by one, unless a test says otherwise.
pub const NOWHERE: &str = "/dev/null/rings";

/// Tells programs that a test has chosen their ring directory, or has left it out.
#[cfg(target_os = "linux")]
const IS_CHOSEN: &str = "EVENTRING_TEST_DIR_IS_CHOSEN";

/// The C library calls the functions of this section before `main`.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section holds pointers to functions of this kind, and this one has been written for the time before
// `main`: it needs nothing that `main` or the standard library's start makes.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = choose_nowhere;

#[cfg(target_os = "linux")]
extern "C" fn choose_nowhere() {
    if std::env::var_os(IS_CHOSEN).is_some() {
        return;
    }
    for (name, value) in [(IS_CHOSEN, "1"), ("EVENTRING_DIR", NOWHERE)] {
        // SAFETY: no other thread of this process runs yet, so none reads the environment meanwhile.
        unsafe { std::env::set_var(name, value) };
    }
}

/// Makes a test that names without `/` lead nowhere in this program. Each program of tests that records has it, and so
/// has this crate, whether it needs more of it or not.
#[macro_export]
macro_rules! names_lead_nowhere {
    () => {
        #[cfg(target_os = "linux")]
        #[test]
        fn names_of_rings_lead_nowhere_in_tests() {
            $crate::own_rings::check();
        }
    };
}

/// Checks that names without `/` lead nowhere in this program.
#[cfg(target_os = "linux")]
pub fn check() {
    assert_eq!(std::env::var("EVENTRING_DIR").as_deref(), Ok(NOWHERE));
    let refused = eventring::recorder::Recorder::builder(eventring::recorder::ContentDescription::new(300, "NOWHERE"));
    let refused = refused.config("names-lead-nowhere:15:21").build().unwrap_err().to_string();
    assert!(refused.contains(NOWHERE), "{refused}");
}
