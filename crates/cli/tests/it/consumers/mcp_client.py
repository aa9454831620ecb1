"""Talks to `eventring mcp` with PyPI's mcp. The arguments are the program, a capture, a name that has no file, and a
snapshot of execution events. Prints what the tools answer."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program, capture, nothing, chain):
    server = StdioServerParameters(command=program, args=["mcp"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        begun = (await session.initialize()).model_dump(by_alias=True)
        await session.send_ping()
        tools = [tool.model_dump(by_alias=True) for tool in (await session.list_tools()).tools]

        async def call(tool, **arguments):
            answer = (await session.call_tool(tool, arguments)).model_dump(by_alias=True)
            text = answer["content"][0]["text"]
            return {"is_error": bool(answer.get("isError")), "text": text, "bytes": len(text.encode())}

        pages, after = [], {}
        while True:
            page = json.loads((await call("summary", files=[capture], limit=7, **after))["text"])
            pages.append([span["name"] for span in page["spans"]])
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        return {
            "server": begun["serverInfo"]["name"],
            "tools": {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in tools},
            "ask": await call("ask", files=[capture]),
            "small": await call("ask", files=[capture], max_bytes=2000),
            "whole": await call("summary", files=[capture]),
            "why": await call("why", files=[capture], slowest=1),
            "check": await call("check", files=["/nowhere/ring"]),
            "find": await call("find", files=[capture], expression="span=request", limit=2),
            "find_some": await call("find", files=[capture], expression="span=request"),
            "blocks": await call("exec_blocks", files=[chain], headers=True, limit=1),
            "no_expression": await call("find", files=[capture]),
            "no_option": await call("find", files=[capture], expression="--scan"),
            "pages": pages,
            "no_file": await call("ask", files=[nothing]),
            "an_option": await call("ask", files=["--version"]),
            "unknown_argument": await call("ask", files=[capture], output="x"),
        }


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
