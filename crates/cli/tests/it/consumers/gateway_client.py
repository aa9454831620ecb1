"""Subscribes to everything that a gateway has, from its beginning on, and prints what came. Other connections take nothing."""

import asyncio
import json
import sys
from collections import Counter

import websockets

KINDS = ["newHeads", "logs", "monadNewHeads", "monadLogs"]


async def main(address, blocks, slow):
    url = f"ws://{address}"
    idle = []
    for _ in range(int(slow)):
        # A client whose program does not read: only what fits the buffers of the connection is taken.
        client = await websockets.connect(url, max_queue=1)
        await client.send(json.dumps(subscribe(1, "logs", {"resume_from": {"number": 0}})))
        idle.append(client)
    found = {kind: [] for kind in KINDS}
    gaps = []
    async with websockets.connect(url, max_size=None) as client:
        kinds = {}
        for number, kind in enumerate(KINDS):
            # Nothing has the number 0, so all that is remembered comes, after the word that something may be missing.
            await client.send(json.dumps(subscribe(number, kind, {"resume_from": {"number": 0}})))
        await client.send(json.dumps(subscribe(9, "nonsense", {})))
        errors = []
        # The last block is final, and not verified.
        while sum(head["commitState"] == "Finalized" for head in found["monadNewHeads"]) < int(blocks) or not errors:
            message = json.loads(await asyncio.wait_for(client.recv(), 60))
            if "error" in message:
                errors.append(message["error"]["message"])
            elif "result" in message:
                kinds[message["result"]] = KINDS[message["id"]]
            else:
                result = message["params"]["result"]
                if "gap" in result:
                    gaps.append(result["gap"])
                else:
                    found[kinds[message["params"]["subscription"]]].append(result)
        # What belongs to the last block comes right after it.
        try:
            while True:
                message = json.loads(await asyncio.wait_for(client.recv(), 1))
                if "gap" not in message["params"]["result"]:
                    found[kinds[message["params"]["subscription"]]].append(message["params"]["result"])
        except (asyncio.TimeoutError, websockets.ConnectionClosed):
            pass
        heads = found["newHeads"]
        middle = heads[len(heads) // 2]
        later = []
        async with websockets.connect(url, max_size=None) as other:
            await other.send(json.dumps(subscribe(1, "newHeads", {"resume_from": {"number": middle["number"]}})))
            await other.recv()
            while len(later) < len(heads) - len(heads) // 2 - 1:
                later.append(json.loads(await asyncio.wait_for(other.recv(), 60))["params"]["result"])
    print(
        json.dumps(
            {
                "heads": heads,
                "later": [head["hash"] for head in later],
                "logs": found["logs"],
                "states": Counter(head["commitState"] for head in found["monadNewHeads"]),
                "monad_logs": len(found["monadLogs"]),
                "monad_head": list(found["monadNewHeads"][0])[:3],
                "gaps": gaps,
                "errors": errors,
            }
        )
    )


def subscribe(number, kind, options):
    return {"jsonrpc": "2.0", "id": number, "method": "eth_subscribe", "params": [kind, options]}


asyncio.run(main(*sys.argv[1:]))
