"""A service of other people, with PyPI's opentelemetry-sdk: it stands between two services of ours.

Arguments: the port of the service that it calls, and that of a collector. Prints its own port. Each request becomes a
span of the SDK, in which the other service is called. Ends, and sends what is left, when stdin is closed.
"""

import http.client
import http.server
import os
import sys
import threading

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator


def main():
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    callee, collector = (int(port) for port in sys.argv[1:3])
    exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{collector}/v1/traces")
    provider = TracerProvider(resource=Resource({"service.name": "middle"}))
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=1 << 20, schedule_delay_millis=200))
    tracer = provider.get_tracer("middle")
    propagator = TraceContextTextMapPropagator()
    of_thread = threading.local()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            caller = propagator.extract({name.lower(): value for name, value in self.headers.items()})
            with tracer.start_as_current_span("middle", context=caller, kind=SpanKind.SERVER):
                headers = {}
                propagator.inject(headers)
                if not hasattr(of_thread, "callee"):
                    of_thread.callee = http.client.HTTPConnection("127.0.0.1", callee)
                of_thread.callee.request("GET", "/from-middle", headers=headers)
                of_thread.callee.getresponse().read()
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    provider.shutdown()


if __name__ == "__main__":
    main()
