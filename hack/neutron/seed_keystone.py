"""Makes users and projects in a new Keystone, and prints their clouds.yaml: seed_keystone.py KEYSTONE_URL NEUTRON_URL

Clouds: demo and other (a member each, of a project of that name), demo-application-credential (the same as demo, without a password),
reader (of project demo) and admin. Passwords are the user's name. Neutron is user neutron of project service.
"""
import json
import sys
import urllib.request

KEYSTONE, NEUTRON = sys.argv[1:]
REGION = 'RegionOne'


def send(method, path, body, token=''):
    headers = {'Content-Type': 'application/json', 'X-Auth-Token': token}
    request = urllib.request.Request(KEYSTONE + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.headers, json.loads(answer.read() or 'null')


def call(method, path, caller='admin', **body):
    """Asks with a new token: one that lives for seconds would not last until the end."""
    identity = {'methods': ['password'], 'password': {'user': {'name': caller, 'password': caller, 'domain': {'id': 'default'}}}}
    scope = {'project': {'name': caller, 'domain': {'id': 'default'}}}
    headers, _ = send('POST', '/auth/tokens', {'auth': {'identity': identity, 'scope': scope}})
    return send(method, path, body, headers['X-Subject-Token'])[1]


def cloud(**auth):
    return {'region_name': REGION, 'auth': {'auth_url': KEYSTONE, **auth}}


def password_cloud(user, project):
    return cloud(username=user, password=user, user_domain_id='default', project_name=project, project_domain_id='default')


roles = {role['name']: role['id'] for role in call('GET', '/roles')['roles']}
projects = {name: call('POST', '/projects', project={'name': name, 'domain_id': 'default'})['project']['id']
            for name in ('service', 'demo', 'other')}
users = {}
clouds = {'admin': password_cloud('admin', 'admin')}
for user, project, role in (('neutron', 'service', 'admin'), ('demo', 'demo', 'member'), ('other', 'other', 'member'),
                            ('reader', 'demo', 'reader')):
    users[user] = call('POST', '/users', user={'name': user, 'password': user, 'domain_id': 'default'})['user']['id']
    call('PUT', '/projects/%s/users/%s/roles/%s' % (projects[project], users[user], roles[role]))
    if user != 'neutron':
        clouds[user] = password_cloud(user, project)

service = call('POST', '/services', service={'type': 'network', 'name': 'neutron'})['service']['id']
for interface in ('public', 'internal', 'admin'):
    call('POST', '/endpoints',
         endpoint={'service_id': service, 'interface': interface, 'region_id': REGION, 'url': NEUTRON})

credential = call('POST', '/users/%s/application_credentials' % users['demo'], caller='demo',
                  application_credential={'name': 'demo'})['application_credential']
clouds['demo-application-credential'] = dict(
    cloud(application_credential_id=credential['id'], application_credential_secret=credential['secret']),
    auth_type='v3applicationcredential')
# JSON is YAML.
print(json.dumps({'clouds': clouds}, indent=2))
