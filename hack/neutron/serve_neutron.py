"""Serves Neutron's API without the workers that wait for agents on a message bus."""
import signal

import neutron.cmd.eventlet  # noqa: F401, makes the standard library cooperative and has to come first
from neutron import server
from neutron import service


def serve():
    api = service.serve_wsgi(service.NeutronApiService)
    if api.wsgi_app.process_launcher is None:
        # Without workers nobody listens to the signal.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    api.wait()


server.boot_server(serve)
