"""Takes one request at a time where the database is SQLite.

A green thread that waits for SQLite's lock stops the whole process, and with it the green thread that holds the lock: after five
seconds "database is locked" is the answer.
"""
from eventlet import semaphore
from oslo_config import cfg


def factory(global_conf):
    turn = semaphore.Semaphore()

    def wrap(application):
        def serve(environ, start_response):
            with turn:
                return application(environ, start_response)
        return serve if cfg.CONF.database.connection.startswith('sqlite') else application
    return wrap
