//! The functions that spawn tasks.

use crate::record::NewTask;
use crate::task::Task;
use std::any::type_name;
use std::panic::Location;
use tokio::runtime::{Handle, Runtime};
use tokio::task::{AbortHandle, JoinHandle, JoinSet, LocalSet};

/// Makes a task of a future. Without a name it has that of the future's type, which names the function around it.
#[inline]
fn task<F>(name: Option<&str>, kind: &'static str, spawned_at: &'static Location<'static>, future: F) -> Task<F> {
    Task::from_new_task(NewTask { name: name.unwrap_or(type_name::<F>()), kind, spawned_at }, future)
}

/// Calls `spawn`, and lets the hooks of [`instrument`](crate::instrument) leave out the task that it spawns.
#[inline]
fn recorded<T>(spawn: impl FnOnce() -> T) -> T {
    #[cfg(tokio_unstable)]
    let _wrapped = crate::hooks::Wrapped::new();
    spawn()
}

/// Spawns a future as [`tokio::spawn`] does.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert_eq!(eventring_tokio::spawn(async { 7 }).await?, 7);
/// # Ok::<(), tokio::task::JoinError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let task = task(None, "async", Location::caller(), future);
    recorded(|| tokio::spawn(task))
}

/// Spawns a future as [`spawn`] does, with a name.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert_eq!(eventring_tokio::spawn_named("seven", async { 7 }).await?, 7);
/// # Ok::<(), tokio::task::JoinError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn spawn_named<F>(name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let task = task(Some(name), "async", Location::caller(), future);
    recorded(|| tokio::spawn(task))
}

/// Spawns a future on the current [`LocalSet`], as [`tokio::task::spawn_local`] does.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let local = tokio::task::LocalSet::new();
/// let seven = std::rc::Rc::new(7);
/// local.run_until(async { assert_eq!(*eventring_tokio::spawn_local(async move { seven }).await.unwrap(), 7) }).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: 'static> + 'static,
{
    let task = task(None, "local", Location::caller(), future);
    recorded(|| tokio::task::spawn_local(task))
}

/// Spawns a future as [`spawn_local`] does, with a name.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let local = tokio::task::LocalSet::new();
/// local.run_until(async { eventring_tokio::spawn_local_named("nothing", async {}).await.unwrap() }).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn_local_named<F>(name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: 'static> + 'static,
{
    let task = task(Some(name), "local", Location::caller(), future);
    recorded(|| tokio::task::spawn_local(task))
}

/// The same for a runtime that is not the current one.
///
/// ```
/// use eventring_tokio::SpawnExt;
///
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let task = runtime.handle().spawn_task("seven", async { 7 });
/// assert_eq!(runtime.block_on(task)?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait SpawnExt {
    /// Spawns a future on this runtime, with a name.
    #[track_caller]
    fn spawn_task<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;
}

impl SpawnExt for Handle {
    #[track_caller]
    fn spawn_task<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let task = task(Some(name), "async", Location::caller(), future);
        recorded(|| self.spawn(task))
    }
}

impl SpawnExt for Runtime {
    #[track_caller]
    fn spawn_task<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle().spawn_task(name, future)
    }
}

/// The same for a [`JoinSet`].
///
/// ```
/// use eventring_tokio::JoinSetExt;
/// use tokio::task::JoinSet;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut set = JoinSet::new();
/// for number in 1..=3 {
///     set.spawn_task("number", async move { number });
/// }
/// assert_eq!(set.join_all().await.iter().sum::<i32>(), 6);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait JoinSetExt<T> {
    /// Spawns a future in this set, with a name.
    #[track_caller]
    fn spawn_task<F>(&mut self, name: &str, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send;

    /// Spawns a future in this set and on a [`LocalSet`], with a name.
    #[track_caller]
    fn spawn_task_on<F>(&mut self, name: &str, future: F, local: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static;
}

impl<T: 'static> JoinSetExt<T> for JoinSet<T> {
    #[track_caller]
    fn spawn_task<F>(&mut self, name: &str, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let task = task(Some(name), "async", Location::caller(), future);
        recorded(|| self.spawn(task))
    }

    #[track_caller]
    fn spawn_task_on<F>(&mut self, name: &str, future: F, local: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let task = task(Some(name), "local", Location::caller(), future);
        recorded(|| self.spawn_local_on(task, local))
    }
}
