//! Samples of stacks. Functions, files and stacks are written once, in the sequence of the trace's head.

use super::messages::{
    Callstack, Frame, InternedCode, InternedString, MODE_KERNEL, MODE_USER, Mapping, PerfSample, TracePacket,
};
use crate::formats::trace_writer::StackSample;
use eventring_profile::by_span::StackKey;
use std::collections::HashMap;
use std::sync::Arc;

/// The stacks, functions and files that were written, with their numbers.
#[derive(Default)]
pub(super) struct WrittenCode {
    stacks: HashMap<StackKey, (u64, u32)>,
    frames: HashMap<(Arc<str>, Arc<str>, u64), u64>,
    functions: HashMap<Arc<str>, u64>,
    files: HashMap<Arc<str>, u64>,
}

/// Returns the number of a text, or what is needed to write it, too.
fn number(known: &mut HashMap<Arc<str>, u64>, text: &Arc<str>) -> (u64, Option<InternedString>) {
    if let Some(iid) = known.get(text) {
        return (*iid, None);
    }
    let iid = known.len() as u64 + 1;
    known.insert(text.clone(), iid);
    (iid, Some(InternedString { iid: Some(iid), str: Some(text.as_bytes().to_vec()) }))
}

impl WrittenCode {
    /// Returns the packet of a sample, with what was not written before.
    pub(super) fn packet(&mut self, sample: &StackSample<'_>) -> TracePacket {
        let mut new = InternedCode::default();
        let (callstack, cpu_mode) = match self.stacks.get(&sample.stack) {
            Some(known) => *known,
            None => self.stack(sample, &mut new),
        };
        let perf_sample = PerfSample {
            cpu: Some(sample.cpu.into()),
            pid: Some(sample.pid),
            tid: Some(sample.tid),
            callstack_iid: Some(callstack),
            cpu_mode: Some(cpu_mode),
        };
        TracePacket {
            timestamp: Some(sample.nanos),
            interned_data: (new != InternedCode::default()).then_some(new),
            perf_sample: Some(perf_sample),
            ..TracePacket::default()
        }
    }

    fn stack(&mut self, sample: &StackSample<'_>, new: &mut InternedCode) -> (u64, u32) {
        let frames = sample.code.frames(sample.stack);
        let cpu_mode = if frames.last().is_some_and(|frame| frame.is_kernel) { MODE_KERNEL } else { MODE_USER };
        let mut frame_ids = Vec::with_capacity(frames.len());
        for frame in frames {
            let path = if frame.is_kernel { "[kernel]".into() } else { frame.path };
            let key = (frame.name, path, frame.place);
            if let Some(iid) = self.frames.get(&key) {
                frame_ids.push(*iid);
                continue;
            }
            let iid = self.frames.len() as u64 + 1;
            let (function, text) = number(&mut self.functions, &key.0);
            new.function_names.extend(text);
            let (file, text) = number(&mut self.files, &key.1);
            if let Some(text) = text {
                new.mapping_paths.push(text);
                new.mappings.push(Mapping { iid: Some(file), path_string_ids: vec![file] });
            }
            let (function_name_id, mapping_id, rel_pc) = (Some(function), Some(file), Some(key.2));
            new.frames.push(Frame { iid: Some(iid), function_name_id, mapping_id, rel_pc });
            self.frames.insert(key, iid);
            frame_ids.push(iid);
        }
        let iid = self.stacks.len() as u64 + 1;
        new.callstacks.push(Callstack { iid: Some(iid), frame_ids });
        self.stacks.insert(sample.stack, (iid, cpu_mode));
        (iid, cpu_mode)
    }
}
