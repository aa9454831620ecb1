//! Sends each event of rings as one message of NATS JetStream. The message is the event's descriptor and payload,
//! unchanged.
//!
//!     message_per_event ADDRESS STREAM ACKS RING…
//!
//! To send the events of a recorder, name each of its shards as a ring.
//!
//! ACKS is the number of messages that may wait for acknowledgements. With 0, messages are sent without JetStream and
//! are not acknowledged.

use async_nats::jetstream;
use eventring::reader::{Next, Reader, Seek};
use std::collections::VecDeque;
use std::future::IntoFuture as _;
use std::time::Instant;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, stream, acks, rings @ ..] = args.as_slice() else {
        return Err("expected ADDRESS STREAM ACKS RING…".into());
    };
    let acks_max: usize = acks.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let task = runtime.spawn(send(rings.to_vec(), address.clone(), stream.clone(), acks_max));
    let (events, bytes, seconds) = runtime.block_on(task)??;
    println!(
        "{{\"events\":{events},\"bytes\":{bytes},\"seconds\":{seconds:.3},\"events_per_second\":{:.0}}}",
        events as f64 / seconds
    );
    Ok(())
}

async fn send(rings: Vec<String>, address: String, stream: String, acks_max: usize) -> Result<(u64, u64, f64), Error> {
    let client = async_nats::connect(&address).await?;
    let context = jetstream::new(client.clone());
    let subjects = vec![format!("{stream}.>")];
    let config = jetstream::stream::Config { name: stream.clone(), subjects, ..Default::default() };
    context.get_or_create_stream(config).await?;
    let subject = format!("{stream}.events");
    let readers = rings.iter().map(Reader::open).collect::<Result<Vec<_>, _>>()?;
    let mut cursors: VecDeque<_> = readers.iter().map(Reader::cursor).collect();
    cursors.iter_mut().for_each(|cursor| cursor.seek(Seek::Oldest));
    let mut buffer = Vec::new();
    let (mut events, mut bytes, start) = (0_u64, 0_u64, Instant::now());
    let mut waiting = VecDeque::new();
    while let Some(cursor) = cursors.front_mut() {
        let event = match cursor.next() {
            Next::Event(event) => event,
            Next::Gap(_) => continue,
            Next::NotReady => {
                cursors.pop_front();
                continue;
            }
        };
        let Some(payload) = cursor.payload(&event, &mut buffer).valid() else { continue };
        let mut message = Vec::with_capacity(64 + payload.len());
        for word in [event.seqno, event.record_epoch_nanos, u64::from(event.event_type), u64::from(event.payload_size)]
        {
            message.extend_from_slice(&word.to_le_bytes());
        }
        event.content_ext.iter().for_each(|word| message.extend_from_slice(&word.to_le_bytes()));
        message.extend_from_slice(payload);
        (events, bytes) = (events + 1, bytes + message.len() as u64);
        if acks_max == 0 {
            client.publish(subject.clone(), message.into()).await?;
            continue;
        }
        waiting.push_back(context.publish(subject.clone(), message.into()).await?.into_future());
        if waiting.len() >= acks_max
            && let Some(first) = waiting.pop_front()
        {
            first.await?;
        }
    }
    for ack in waiting {
        ack.await?;
    }
    client.flush().await?;
    Ok((events, bytes, start.elapsed().as_secs_f64()))
}
