// Starts two OpenID providers that none of us wrote (the npm package oidc-provider) on free ports of this machine.
//
// Prints one line of JSON when both listen, and one for each command that is read from standard input. It ends when its
// input ends, so that it never outlives the tests that started it.
//   rotate ISSUER   new signing keys instead of all before; sessions, grants and opaque tokens stay
//   fetches ISSUER  how often its key set was asked for
import { createServer } from 'node:http';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';

import Provider from 'oidc-provider';

console.info = console.error; // standard output is for the lines of this program alone
console.warn = console.error;

const AUDIENCE = 'https://gateway.example';
const OPAQUE_AUDIENCE = 'https://opaque.gateway.example';
const SCOPES = 'memory session gateway admin';
const SECRET = 'a-secret-of-the-tests-and-of-nobody-else';
const NATIVE = 'http://127.0.0.1/callback'; // RFC 8252 section 7.3: of a loopback address any port will do

// Who signs in: the name is the subject. Any password will do, the pages are the package's own for development.
const ACCOUNTS = {
  alice: { email: 'alice@example.com', email_verified: true, groups: ['staff'] },
  bob: { email: 'bob@example.com', email_verified: false, groups: ['staff', 'flight-leads'] },
  dana: { email: 'dana@example.com', email_verified: true, groups: ['flight-leads'] },
};

const CLIENTS = [
  { client_id: 'console', client_secret: SECRET, redirect_uris: [NATIVE], application_type: 'native' },
  { client_id: 'phone', token_endpoint_auth_method: 'none', redirect_uris: [NATIVE], application_type: 'native' },
  ...['robot', 'introspector'].map((client_id) => ({
    client_id,
    client_secret: SECRET,
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
  })),
];

function keys() {
  const pairs = [generateKeyPairSync('ec', { namedCurve: 'P-256' }), generateKeyPairSync('rsa', { modulusLength: 2048 })];
  return pairs.map(({ privateKey }, index) => ({
    ...privateKey.export({ format: 'jwk' }),
    kid: randomBytes(8).toString('hex'),
    alg: ['ES256', 'RS256'][index],
    use: 'sig',
  }));
}

// What a provider remembers (its "adapter"), kept over a rotation of keys, which makes a new Provider.
function memory() {
  const entries = new Map();
  const matching = (wanted) => [...entries].filter(([, entry]) => wanted(entry));
  return class {
    constructor(model) { this.model = model; }
    key(id) { return `${this.model}:${id}`; }
    async find(id) { return entries.get(this.key(id)); }
    async findByUid(uid) { return matching((entry) => entry.uid === uid && this.model === 'Session')[0]?.[1]; }
    async upsert(id, payload) { entries.set(this.key(id), payload); }
    async consume(id) { entries.get(this.key(id)).consumed = Math.floor(Date.now() / 1000); }
    async destroy(id) { entries.delete(this.key(id)); }
    async revokeByGrantId(grantId) { matching((entry) => entry.grantId === grantId).forEach(([key]) => entries.delete(key)); }
  };
}

function resourceServer(_ctx, resource) {
  const jwt = resource === AUDIENCE;
  if (!jwt && resource !== OPAQUE_AUDIENCE) throw Object.assign(new Error('invalid_target'), { expose: true, statusCode: 400 });
  return {
    audience: resource,
    scope: SCOPES,
    accessTokenTTL: 3600,
    accessTokenFormat: jwt ? 'jwt' : 'opaque',
    jwt: jwt ? { sign: { alg: 'ES256' } } : undefined,
  };
}

function configuration({ adapter, cookieKeys, conform }) {
  return {
    adapter,
    clients: CLIENTS,
    jwks: { keys: keys() },
    cookies: { keys: cookieKeys },
    scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    conformIdTokenClaims: conform,
    pkce: { required: () => true },
    findAccount: (_ctx, id) => ACCOUNTS[id] && { accountId: id, claims: () => ({ sub: id, ...ACCOUNTS[id] }) },
    extraTokenClaims: (_ctx, token) => ACCOUNTS[token.accountId],
    features: {
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: (_ctx, client) => client.clientId === 'introspector' },
      registration: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer, useGrantedResource: () => true },
      rpInitiatedLogout: { enabled: true },
    },
    ttl: { Session: 3600, Grant: 3600, Interaction: 600, IdToken: 3600 },
  };
}

// One issuer on a port of its own; its name holds the port, so it begins to listen before it is made.
//
// conform: whether what scopes name is told at the userinfo endpoint alone (OpenID Connect Core section 5.4), or, as most
// providers do it, in the ID token too.
async function issuer(conform) {
  const kept = { adapter: memory(), cookieKeys: [randomBytes(16).toString('hex')], conform };
  const made = { fetches: 0, answer: (_request, response) => response.writeHead(503).end() };
  const server = createServer((request, response) => {
    if (request.url === '/jwks') made.fetches += 1;
    made.answer(request, response);
  });
  await new Promise((listening) => { server.listen(0, '127.0.0.1', listening); });
  made.url = `http://127.0.0.1:${server.address().port}`;
  made.rotate = () => { made.answer = new Provider(made.url, configuration(kept)).callback(); };
  made.rotate();
  return made;
}

const issuers = await Promise.all([issuer(false), issuer(true)]);
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ issuers: issuers.map(({ url }) => url), audience: AUDIENCE, opaque_audience: OPAQUE_AUDIENCE, secret: SECRET });

const commands = createInterface({ input: process.stdin });
commands.on('close', () => process.exit(0));
commands.on('line', (line) => {
  const [command, url] = line.split(' ');
  const named = issuers.find((one) => one.url === url);
  if (command === 'rotate') named.rotate();
  say({ fetches: named.fetches });
});
