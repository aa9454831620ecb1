"""Subscribes to one thing of a gateway and prints what is told, a line each, until so many headers came. Then the close code."""

import asyncio
import json
import sys

import websockets


async def main(address, kind, headers):
    async with websockets.connect(f"ws://{address}", max_size=None) as client:
        request = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": [kind]}
        await client.send(json.dumps(request))
        await client.recv()
        print(json.dumps("subscribed"), flush=True)
        count = 0
        while count < int(headers):
            result = json.loads(await asyncio.wait_for(client.recv(), 60))["params"]["result"]
            count += "number" in result
            print(json.dumps(result), flush=True)
        await client.close()
        print(json.dumps({"close_code": client.close_code}), flush=True)


asyncio.run(main(*sys.argv[1:]))
