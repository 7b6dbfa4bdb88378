"""A caller's identity is what its token states. For a Neutron that nobody but a test can reach.

X-Auth-Token: it:USER:PROJECT:ROLE[,ROLE][:EXPIRES], with EXPIRES in seconds since 1970. No token is the administrator of project
fake_project_id. Any other token, and one that has expired, gets the 401 that keystonemiddleware sends.
"""
import time

from neutron_lib import context
from oslo_middleware import base
import webob.dec
import webob.exc

ADMINISTRATOR = 'it:admin:fake_project_id:admin'


class Filter(base.ConfigurableMiddleware):

    @webob.dec.wsgify
    def __call__(self, request):
        try:
            identity = read(request.headers.get('X-Auth-Token') or ADMINISTRATOR)
        except ValueError:
            return webob.exc.HTTPUnauthorized(
                json_body={'error': {'code': 401, 'title': 'Unauthorized',
                                     'message': 'The request you have made requires authentication.'}},
                headers=[('WWW-Authenticate', 'Keystone uri="http://127.0.0.1:5000/v3"')])
        request.environ['neutron.context'] = identity
        return self.application


def read(token):
    prefix, user, project, roles, *expires = token.split(':')
    if prefix != 'it' or not project or len(expires) > 1:
        raise ValueError('not a token')
    if expires and int(expires[0]) <= time.time():
        raise ValueError('token expired')
    return context.Context(user_id=user, project_id=project, roles=roles.split(','))
