"""Serves Keystone: serve_keystone.py PORT --config-file FILE..."""
import sys

from keystone.server import wsgi
import waitress

# SQLite's connections belong to a thread, and Keystone leaves some open.
port = int(sys.argv.pop(1))
waitress.serve(wsgi.initialize_public_application(), host='127.0.0.1', port=port, threads=1)
