//! `eventring serve`.

use super::replay::{Replay, Speed};
use crate::exit::{Exit, Failure};
use crate::input::ring_args::Expect;
use crate::input::{advice, saved};
use crate::interrupt::Interrupt;
use crate::text::format::content_name;
use eventring::control::{Server, ServerAddress, ServerBuilder};
use eventring::internal::ServedFileContent;
use eventring::reader::{Reader, shard_path};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Serve a snapshot, capture or dead ring to any client
///
/// Clients read it as they read the rings of a living program: `eventring watch SOCKET`. It is served until Ctrl-C.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Name or path of a ring, a snapshot, or a capture
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where clients connect: a path, or `@name` for a name in the abstract namespace
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Record the events once more, into live rings: at this multiple of the speed at which they were recorded (1x,
    /// 2.5x), or as fast as possible (max). A capture is always recorded once more, without this option before it is
    /// served
    #[arg(long, value_name = "SPEED", value_parser = Speed::parse)]
    speed: Option<Speed>,
}

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    let is_capture = saved::has_capture(std::slice::from_ref(&args.file));
    let address = ServerAddress::new(&args.socket);
    let builder = Server::builder().address(address).program_name("eventring serve");
    if !is_capture && args.speed.is_none() {
        let _server = start(args, files(args, builder)?)?;
        return Ok(until_interrupted(&interrupt));
    }
    let mut replay = Replay::new(saved::open(std::slice::from_ref(&args.file), false)?.capture)?;
    let Some(speed) = args.speed else {
        replay.run(Speed::Max, &interrupt)?;
        let _server = start(args, builder)?;
        return Ok(until_interrupted(&interrupt));
    };
    let _server = start(args, builder)?;
    Ok(if replay.run(speed, &interrupt)? { until_interrupted(&interrupt) } else { Exit::Done })
}

/// Starts the server, and says that clients can connect.
fn start(args: &ServeArgs, builder: ServerBuilder) -> anyhow::Result<Server> {
    let server = builder.start()?;
    say!("{} is served at {} until Ctrl-C", args.file.display(), server.address());
    Ok(server)
}

fn until_interrupted(interrupt: &Interrupt) -> Exit {
    while !interrupt.came() {
        std::thread::sleep(Duration::from_millis(50));
    }
    Exit::Done
}

/// Serves the ring as it is, with its shards.
fn files(args: &ServeArgs, mut builder: ServerBuilder) -> anyhow::Result<ServerBuilder> {
    let expect = Expect::default();
    let first = expect.options().open(&args.file).map_err(|error| advice::on_expected(&args.file, error))?;
    let name = args.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    for (reader, name) in std::iter::once((first.clone(), name.clone())).chain(shards(&first, &name)) {
        let descriptor = reader.open_read_only().map_err(|error| Failure::io("cannot open the ring again", &error))?;
        let info = reader.info();
        let bytes = std::fs::File::from(descriptor.try_clone()?).metadata()?.len();
        let content_name = content_name(&info).to_owned();
        let mut content = ServedFileContent::new(name, info.content_type, content_name, info.schema_hash, bytes);
        if let Some(extension) = info.extension.as_ref().filter(|extension| extension.shard_limit > 0) {
            content = content.shard(extension.shard_group, extension.shard_index as u32);
        }
        builder = builder.serve_file(content, descriptor);
    }
    Ok(builder)
}

/// Returns the other shards of a recorder, as far as their files are there.
fn shards(shard0: &Reader, name: &str) -> Vec<(Reader, String)> {
    let path = shard0.path().map(Path::to_path_buf).filter(|_| shard0.is_shard_0());
    let Some(path) = path else { return Vec::new() };
    let open = |index| Some((Reader::open(shard_path(&path, index)).ok()?, format!("{name}.{index}")));
    (1..shard0.shard_count()).filter_map(open).collect()
}
