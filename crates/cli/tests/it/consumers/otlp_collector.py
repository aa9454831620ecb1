"""Starts a collector of other people, PyPI's rotel, which passes on what it gets to a receiver in this script.

Prints the collector's port. Reads a line `SPANS LOGS` from stdin, waits until so many have come, and prints all of them
as one JSON object. With the argument `brief`, spans have only names and ids. With `post FILE` as the first line, first posts each line of the file to the collector.
The receiver answers as OTLP demands; the messages are decoded by PyPI's opentelemetry-proto.
"""

import base64
import gzip
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import rotel
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/logs": ExportLogsServiceRequest}


def value_of(value):
    kind = value.WhichOneof("value")
    return {"type": kind, "value": getattr(value, kind)} if kind else None


def attributes_of(attributes):
    named = {attribute.key: value_of(attribute.value) for attribute in attributes}
    assert len(named) == len(attributes), "an attribute is there twice"
    return named


def read(path, request, all):
    if path == "/v1/traces":
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    if "brief" in sys.argv:
                        all["spans"].append({
                            "trace": span.trace_id.hex(), "id": span.span_id.hex(),
                            "parent": span.parent_span_id.hex(), "name": span.name,
                        })
                        continue
                    all["spans"].append({
                        "resource": attributes_of(resource.resource.attributes), "scope": scope.scope.name,
                        "trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                        "name": span.name, "kind": span.kind, "status": span.status.code,
                        "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
                        "attributes": attributes_of(span.attributes),
                        "links": [[link.trace_id.hex(), link.span_id.hex()] for link in span.links],
                        "events": [
                            {"time": event.time_unix_nano, "name": event.name,
                             "attributes": attributes_of(event.attributes)}
                            for event in span.events
                        ],
                    })
    else:
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    all["logs"].append({
                        "resource": attributes_of(resource.resource.attributes), "scope": scope.scope.name,
                        "trace": record.trace_id.hex(), "span": record.span_id.hex(),
                        "time": record.time_unix_nano, "severity": record.severity_text,
                        "body": record.body.string_value, "event_name": record.event_name,
                        "attributes": attributes_of(record.attributes),
                    })


def with_base64_ids(value):
    """OTLP's JSON has ids as hex, and the JSON of Protocol Buffers has base64."""
    if isinstance(value, list):
        return [with_base64_ids(element) for element in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        name: base64.b64encode(bytes.fromhex(of)).decode() if name in ids else with_base64_ids(of)
        for name, of in value.items()
    }


def parse_line(line):
    """Reads a line of an export strictly: each name must be one of OTLP."""
    object = json.loads(line)
    path = "/v1/traces" if "resourceSpans" in object else "/v1/logs"
    return path, json_format.ParseDict(with_base64_ids(object), KINDS[path]())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    all, lock = {"spans": [], "logs": []}, threading.Lock()

    class Receiver(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            with lock:
                read(self.path, KINDS[self.path].FromString(body), all)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port, grpc_port = free_port(), free_port()
    place = tempfile.mkdtemp()
    program = os.path.join(os.path.dirname(rotel.__file__), "rotel-agent")
    environment = {name: of for name, of in os.environ.items() if not name.lower().endswith("_proxy")}
    agent = subprocess.Popen(
        [program, "start", "--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint",
         f"127.0.0.1:{grpc_port}", "--exporter", "otlp", "--otlp-exporter-protocol", "http",
         "--otlp-exporter-endpoint", f"http://127.0.0.1:{server.server_port}", "--pid-file", place + "/pid",
         "--log-file", place + "/log"],
        stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr, env=environment)
    try:
        until = time.time() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.time() < until and agent.poll() is None, "the collector does not listen"
                time.sleep(0.05)
        print(port, flush=True)
        line = sys.stdin.readline().split()
        if line and line[0] == "post":
            with open(line[1]) as lines:
                for text in lines:
                    path, request = parse_line(text)
                    post = urllib.request.Request(
                        f"http://127.0.0.1:{port}{path}", request.SerializeToString(),
                        {"content-type": "application/x-protobuf"})
                    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(post).read()
            line = sys.stdin.readline().split()
        spans, logs = int(line[0]), int(line[1])
        until = time.time() + 30
        while time.time() < until:
            with lock:
                if len(all["spans"]) >= spans and len(all["logs"]) >= logs:
                    break
            time.sleep(0.05)
        time.sleep(0.5)
        with lock:
            print(json.dumps(all), flush=True)
    finally:
        agent.terminate()
        agent.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        all = {"spans": [], "logs": []}
        with open(sys.argv[2]) as lines:
            for line in lines:
                read(*parse_line(line), all)
        print(json.dumps(all))
    else:
        main()
