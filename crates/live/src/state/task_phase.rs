//! The phases of tasks, and the time since each phase began.

use crate::state::LiveState;
use eventring::tracing::Span;
use eventring_capture::recording::{RecordedProgram, ReplayState};
use eventring_tasks::{OpenTasks, Phase, TaskChange, TaskState};

/// What a task does, or did.
#[derive(Clone, Copy)]
pub struct TaskPhase<'a> {
    span: &'a Span,
    program: &'a RecordedProgram,
    phase: Phase,
    until_epoch_nanos: u64,
    is_over: bool,
}

impl<'a> TaskPhase<'a> {
    /// Returns the phase that a change has ended, if it has ended one and no event was lost in it.
    pub(crate) fn ended(change: &TaskChange, process: usize, state: ReplayState<'a>) -> Option<Self> {
        let (phase, span) = (change.ended.filter(|_| change.is_certain)?, state.span(process, change.id)?);
        let program = state.tables.rings.programs().get(process)?;
        Some(Self { span, program, phase, until_epoch_nanos: change.epoch_nanos, is_over: true })
    }

    /// Returns the span of the task.
    #[must_use]
    pub fn span(&self) -> &'a Span {
        self.span
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &'a RecordedProgram {
        self.program
    }

    /// Returns what the task does or did: it is `running`, `woken` or `idle`.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.phase.state
    }

    /// Returns true if the phase has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns how long it lasted, or lasts by now, in nanoseconds.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.phase.nanos_until(self.until_epoch_nanos)
    }

    /// Returns the time of its end, or the present, in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        self.until_epoch_nanos
    }

    /// Returns true if it reached an age after a time, or now.
    pub(crate) fn has_reached(&self, age_nanos: u64, after_epoch_nanos: u64) -> bool {
        self.nanos() >= age_nanos && self.phase.since_epoch_nanos.saturating_add(age_nanos) > after_epoch_nanos
    }
}

impl std::fmt::Debug for TaskPhase<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskPhase").field("span", &self.span.id).field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl<'s> LiveState<'s> {
    /// Calls `f` with what each open task does now, if tables of the present say so, or without tables, if no event was
    /// lost since it was told. Without
    /// [`LiveOptions::with_tasks`](crate::LiveOptions::with_tasks), there are none.
    pub fn each_task_phase(&self, mut f: impl FnMut(&TaskPhase<'s>)) {
        let Some(tasks) = self.replayed.part::<OpenTasks>() else { return };
        for (process, program) in self.programs().iter().enumerate() {
            let Some(of_process) = self.core.processes.get(process) else { continue };
            let until_epoch_nanos = of_process.now_nanos(self.replayed.now_nanos);
            for (id, task) in tasks.of_process(process) {
                // Where there are tables of the present, they know whether the task still does this.
                let in_tables = self.core.tables.have_phase(process, id.get(), &task.phase);
                if in_tables.unwrap_or_else(|| tasks.is_certain(process, task))
                    && !task.phase.state.is_over()
                    && let Some(span) = self.replayed.span(process, id)
                {
                    f(&TaskPhase { span, program, phase: task.phase, until_epoch_nanos, is_over: false });
                }
            }
        }
    }
}
