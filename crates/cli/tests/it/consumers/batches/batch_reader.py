"""An independent reader of eventring's capture files, and of its batches in a NATS stream.

It was written from docs/FORMAT.md and docs/FORWARD.md alone, and believes nothing: every sum, count and order that
these documents promise is checked, and a contradiction raises FormatError.

    batch_reader.py capture FILE [--events OUT.tsv]
    batch_reader.py stream nats://HOST:PORT STREAM [--events OUT.tsv]
"""
import argparse
import asyncio
import json
import sys

import xxhash

from capture_file import EXEC, NO_LOSS, PERF, account, read_capture
from columns import MIB
from numbers_and_texts import FormatError, need


def escaped(name):
    """Return a part of a subject: a name in which only letters, digits, - and _ stand for themselves."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "".join(f"%{b:02X}" for b in c.encode())
                   for c in name)


def check_message(stream, subject, headers, capture, last_sequence):
    """Compare the subject and the headers of a message with the batch in it."""
    for ring in capture.rings:
        need(ring.host is not None and ring.host == capture.rings[0].host, "the rings of a batch have different hosts")
        need(ring.shard0 == 0 and ring.process_key == capture.rings[0].process_key, "a batch has several recorders")
    need(capture.rings, "a batch has no ring")
    recorder = capture.rings[0]
    kind = {PERF: "spans", EXEC: "exec"}.get(recorder.content_type, "events")
    wanted = f"{stream}.{escaped(recorder.host)}.{escaped(recorder.name)}.{kind}"
    need(subject.upper() == wanted.upper(), f"the subject is {subject}, not {wanted}")
    used = [ring for ring in capture.rings if ring.next > ring.first] or capture.rings[:1]
    has_any = used[0].next > used[0].first
    need(has_any or capture.reason == 0, "a batch that is not the last has nothing of any ring")
    what = used[0].first if has_any else "end"
    wanted = f"{used[0].host}/{used[0].name}/{used[0].process_key:016x}-{used[0].created}/{what}"
    need(headers.get("Nats-Msg-Id") == wanted, f"Nats-Msg-Id is {headers.get('Nats-Msg-Id')}, not {wanted}")
    events = sum(ring.events for ring in capture.rings)
    lost = sum(count for ring in capture.rings for _, count, cause in ring.gaps if cause not in NO_LOSS)
    for header, number in (("Eventring-Events", events), ("Eventring-Lost", lost),
                           ("Nats-Expected-Last-Subject-Sequence", last_sequence)):
        need(number is None or headers.get(header) == str(number),
             f"{header} is {headers.get(header)}, not {number}")
    need(len(capture.presents) <= 1, "a batch has two images of tables of the present")
    need(capture.reason in (0, 3, 4), f"a batch ends for the reason {capture.reason}")


async def read_messages(server, stream):
    """Return (sequence number, subject, headers, body) of all messages of a stream, and its first sequence number."""
    import nats
    client = await nats.connect(server, connect_timeout=60)
    try:
        jetstream = client.jetstream(timeout=60)
        state = (await jetstream.stream_info(stream)).state
        messages = []
        if state.messages:
            subscription = await jetstream.subscribe(f"{stream}.>", stream=stream, ordered_consumer=True)
            while not messages or messages[-1][0] < state.last_seq:
                message = await subscription.next_msg(timeout=60)
                sequence = message.metadata.sequence.stream
                messages.append((sequence, message.subject, message.headers or {}, message.data))
        return messages, state.first_seq
    finally:
        await client.close()


def check_stream(stream, messages, first_sequence):
    """Read and check all messages of a stream, in its order; return the captures in them."""
    captures, last, ids = [], {}, set()
    for sequence, subject, headers, body in messages:
        try:
            size = len(body) + sum(len(key) + len(value) + 4 for key, value in headers.items())
            need(size <= MIB, f"the message has {size} bytes")
            capture = read_capture(body)
            before = last.get(subject, 0 if first_sequence == 1 else None)
            check_message(stream, subject, headers, capture, before)
            need(headers["Nats-Msg-Id"] not in ids, "a Nats-Msg-Id is there twice")
        except FormatError as error:
            raise FormatError(f"message {sequence}: {error}") from error
        last[subject] = sequence
        ids.add(headers["Nats-Msg-Id"])
        captures.append(capture)
    return captures


def write_events(captures, path):
    """Write a line for each event, in the order of the rings' names and of the seqnos."""
    blocks = [(ring.name, int(block.seqno[0]), block) for capture in captures for ring in capture.rings
              for block in ring.blocks if block.count]
    with open(path, "w", encoding="utf-8") as out:
        for name, _, block in sorted(blocks, key=lambda entry: entry[:2]):
            for seqno, kind, time, size, ext, payload in block:
                shown = payload if isinstance(payload, str) else xxhash.xxh3_64_hexdigest(payload)
                words = "\t".join(map(str, ext))
                out.write(f"{name}\t{seqno}\t{kind}\t{time}\t{size}\t{words}\t{shown}\n")


def main():
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(description="Read a capture file, or the batches of a stream, and check them")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, arguments in (("capture", ["file"]), ("stream", ["server", "stream"])):
        sub = verbs.add_parser(verb)
        for name in arguments:
            sub.add_argument(name)
        sub.add_argument("--events", metavar="OUT.tsv")
    options = parser.parse_args()
    try:
        if options.verb == "capture":
            with open(options.file, "rb") as file:
                captures = [read_capture(file.read())]
            rings = account(captures, from_begin=False)
        else:
            messages, first = asyncio.run(read_messages(options.server, options.stream))
            captures = check_stream(options.stream, messages, first)
            rings = account(captures, from_begin=first <= 1)
        if options.events:
            write_events(captures, options.events)
    except FormatError as error:
        print(f"batch_reader: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"batches": len(captures), "rings": rings, "bytes": sum(c.bytes for c in captures),
                      "undescribed": sum(c.undescribed for c in captures)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
