"""Measures how long headers take from a node to 99 clients of each of two gateways. Beside those of one of them is a slow client.

The node writes the time at which a block ended as its `gasUsed`. In each round, the hundredth client of one gateway asks for
everything that there was and reads nothing, and that of the other one reads like the others; then they change. Both gateways
tell the same blocks at the same time, so whatever else the machine does disturbs both. Prints for each block the middle and
the longest time of the clients beside the slow one, and of the others, in nanoseconds.
"""

import asyncio
import json
import sys
import time

import websockets

READERS = 99


def subscribe(number, kind, options):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "eth_subscribe", "params": [kind, options]})


async def read(client, found):
    async for text in client:
        now = time.time_ns()
        result = json.loads(text).get("params", {}).get("result", {})
        if "gasUsed" in result:
            ended = int(result["gasUsed"], 16)
            found.setdefault(ended, []).append(now - ended)


async def reader(url, found):
    client = await websockets.connect(url, max_size=None, compression=None)
    await client.send(subscribe(1, "newHeads", {}))
    return client, asyncio.create_task(read(client, found))


async def slow(url):
    client = await websockets.connect(url, max_queue=1, compression=None)
    for request in range(32):
        await client.send(subscribe(request, "monadLogs", {"resume_from": {"number": 0}}))
    return client


async def main(rounds, seconds, *addresses):
    urls = [f"ws://{address}" for address in addresses]
    found, readers, pairs = [{}, {}], [], []
    # One of each in turn, so that neither gateway's clients are always looked at first.
    for _ in range(READERS):
        readers += [await reader(url, times) for url, times in zip(urls, found)]
    await asyncio.sleep(1)
    for number in range(int(rounds)):
        beside = number % 2
        idle, (other, task) = await slow(urls[beside]), await reader(urls[1 - beside], {})
        await asyncio.sleep(0.5)
        found[0].clear(), found[1].clear()
        await asyncio.sleep(float(seconds))
        both = [{ended: sorted(times) for ended, times in of.items() if len(times) == READERS} for of in found]
        for ended in both[0].keys() & both[1].keys():
            times = both[beside][ended], both[1 - beside][ended]
            pairs.append([[of[READERS // 2], of[-1]] for of in times])
        idle.transport.abort()
        task.cancel()
        await other.close()
    for client, task in readers:
        task.cancel()
        await client.close()
    print(json.dumps(pairs))


asyncio.run(main(*sys.argv[1:]))
