#![allow(dead_code)]
#[derive(Clone, Copy)] pub struct Descriptor { pub t: u16, pub nanos: u64, pub thread: u32 }
pub struct Catalog(Vec<u32>);
pub struct RecordedRings { recorder: Vec<Option<usize>> }
#[derive(Clone, Copy)] pub struct Tables<'t> { pub rings: &'t RecordedRings, pub catalogs: &'t [Catalog] }
#[derive(Clone, Copy)] pub struct RawRecord<'p> { pub descriptor: &'p Descriptor, pub payload: &'p [u8] }
impl<'p> RawRecord<'p> { fn new(c: &mut Catalog, d: &'p Descriptor, p: &'p [u8]) -> Self { c.0.push(d.thread); Self { descriptor: d, payload: p } } }
pub enum Content<'e> { Perf { recorder: usize, record: RawRecord<'e> }, Typed { d: &'e Descriptor, p: &'e [u8] }, Gap(u64) }
pub struct Entry<'e> { pub tables: Tables<'e>, pub ring: u32, pub content: Content<'e> }
pub trait EntrySource { fn next(&mut self) -> Option<Entry<'_>>; fn tables(&self) -> Tables<'_>; fn forget_thread(&mut self, _: usize, _: u32) {} }
pub enum Item { Gap { ring: usize, count: u64 }, Event { ring: usize, event: Descriptor } }
pub struct RingSet { at: usize, buf: Vec<u8> }
impl RingSet { fn next(&mut self) -> Option<Item> { self.at += 1; match self.at { 1..=3 => Some(Item::Event { ring: self.at % 3, event: Descriptor { t: 1, nanos: 5, thread: 9 } }), 4 => Some(Item::Gap { ring: 0, count: 2 }), _ => None } }
  fn payload(&mut self) -> &[u8] { self.buf.push(1); &self.buf } fn rings(&self) -> usize { 2 } }
pub struct RingSource { set: RingSet, rings: RecordedRings, catalogs: Vec<Catalog>, last: Descriptor }
impl RingSource { fn know(rings: &RecordedRings, catalogs: &mut [Catalog], ring: usize, all: usize) { if let Some(r) = rings.recorder[ring] { catalogs[r].0.push(all as u32) } } fn take_new(&mut self) { self.rings.recorder.push(None) } }
impl EntrySource for RingSource {
  fn next(&mut self) -> Option<Entry<'_>> {
    loop {
      let item = self.set.next()?;
      if self.set.rings() > self.rings.recorder.len() { self.take_new(); }
      let (Item::Gap { ring, .. } | Item::Event { ring, .. }) = item;
      if ring >= self.rings.recorder.len() { continue; }
      let Self { set, rings, catalogs, last } = self;
      let content = match item {
        Item::Gap { count, .. } => Content::Gap(count),
        Item::Event { event, .. } => {
          Self::know(rings, catalogs, ring, set.rings());
          *last = event;
          let payload = set.payload();
          match rings.recorder[ring] { Some(recorder) => Content::Perf { recorder, record: RawRecord::new(&mut catalogs[recorder], last, payload) }, None => Content::Typed { d: last, p: payload } }
        }
      };
      return Some(Entry { tables: Tables { rings, catalogs }, ring: ring as u32, content });
    }
  }
  fn tables(&self) -> Tables<'_> { Tables { rings: &self.rings, catalogs: &self.catalogs } }
  fn forget_thread(&mut self, r: usize, _: u32) { self.catalogs[r].0.clear() }
}
pub struct Replay(Vec<u64>); pub struct Span(u64); pub enum Step { None, Some(u64) }
impl Replay { fn push_raw(&mut self, r: &RawRecord<'_>, _: &Catalog) -> Step { self.0.push(r.descriptor.nanos); Step::Some(1) } fn take_closed(&mut self) -> Option<Box<Span>> { self.0.pop().map(|n| Box::new(Span(n))) } }
#[derive(Clone, Copy)] pub struct State<'r> { pub tables: Tables<'r>, pub replays: &'r [Replay], pub now: u64 }
pub trait Consumer { fn entry(&mut self, e: &Entry<'_>, s: &Step, st: State<'_>) -> Result<(), ()>; fn span(&mut self, p: usize, s: &Span, st: State<'_>) -> Result<(), ()>; }
impl<A: Consumer, B: Consumer> Consumer for (A, B) {
  fn entry(&mut self, e: &Entry<'_>, s: &Step, st: State<'_>) -> Result<(), ()> { self.0.entry(e, s, st)?; self.1.entry(e, s, st) }
  fn span(&mut self, p: usize, s: &Span, st: State<'_>) -> Result<(), ()> { self.0.span(p, s, st)?; self.1.span(p, s, st) } }
pub struct Engine { replays: Vec<Replay>, now: u64 }
impl Engine {
  pub fn step<C: Consumer>(&mut self, e: &Entry<'_>, c: &mut C) -> Result<Option<(usize, u32)>, ()> {
    let mut ended = None;
    let step = match &e.content { Content::Perf { recorder, record } => { ended = Some((*recorder, record.descriptor.thread)); self.replays[0].push_raw(record, &e.tables.catalogs[*recorder]) } _ => Step::None };
    c.entry(e, &step, State { tables: e.tables, replays: &self.replays, now: self.now })?;
    while let Some(span) = self.replays[0].take_closed() { c.span(0, &span, State { tables: e.tables, replays: &self.replays, now: self.now })?; }
    Ok(ended)
  }
  pub fn drive<S: EntrySource, C: Consumer>(&mut self, s: &mut S, c: &mut C) -> Result<(), ()> {
    loop { let Some(e) = s.next() else { return Ok(()) }; let ended = self.step(&e, c)?; if let Some((r, t)) = ended { s.forget_thread(r, t) } }
  }
}
// live: a core as consumer with a borrowed `see`, and a LiveState that lends all replays and catalogs during the callback.
pub struct Core { n: u64 }
#[derive(Clone, Copy)] pub struct LiveState<'s> { state: State<'s>, core: &'s Core }
pub struct LiveConsumer<'c, F> { core: &'c mut Core, see: &'c mut F }
impl<F: FnMut(u64, LiveState<'_>)> Consumer for LiveConsumer<'_, F> {
  fn entry(&mut self, _: &Entry<'_>, _: &Step, st: State<'_>) -> Result<(), ()> { self.core.n += 1; (self.see)(1, LiveState { state: st, core: self.core }); Ok(()) }
  fn span(&mut self, _: usize, s: &Span, st: State<'_>) -> Result<(), ()> { (self.see)(s.0, LiveState { state: st, core: self.core }); Ok(()) } }
pub struct Live { source: RingSource, engine: Engine, core: Core }
impl Live {
  pub fn read(&mut self, mut see: impl FnMut(u64, LiveState<'_>)) { let mut c = LiveConsumer { core: &mut self.core, see: &mut see }; let _ = self.engine.drive(&mut self.source, &mut c); }
  pub fn state(&self) -> LiveState<'_> { LiveState { state: State { tables: self.source.tables(), replays: &self.engine.replays, now: 0 }, core: &self.core } }
}
fn main() {
  let mut l = Live { source: RingSource { set: RingSet { at: 0, buf: vec![] }, rings: RecordedRings { recorder: vec![Some(0)] }, catalogs: vec![Catalog(vec![])], last: Descriptor { t: 0, nanos: 0, thread: 0 } }, engine: Engine { replays: vec![Replay(vec![])], now: 0 }, core: Core { n: 0 } };
  let mut seen = vec![]; l.read(|n, s| seen.push((n, s.core.n, s.state.replays.len(), s.state.tables.catalogs.len(), s.state.tables.catalogs[0].0.len()))); println!("{seen:?} {}", l.state().core.n);
}
