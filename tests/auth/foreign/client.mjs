// A client library that does not know this project; it prints what happened in one line of JSON.
import * as client from "openid-client";

const { issuer, clientId, secret, redirectUri, change = {}, timeout = 30 } = JSON.parse(process.argv[2]);
const seen = [];

async function flow() {
  const options = { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks], timeout };
  const config = await client.discovery(new URL(issuer), clientId, { client_secret: secret, ...change.metadata },
    secret ? client.ClientSecretBasic(change.secret ?? secret) : client.None(), options);
  const verifier = client.randomPKCECodeVerifier();
  const [state, nonce] = [client.randomState(), client.randomNonce()];
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri, scope: "openid profile", state, nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256", ...change.url,
  });
  const redirected = await fetch(url, { redirect: "manual" });
  seen.push(redirected.status);
  const returned = new URL(redirected.headers.get("location"));
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, ...change.checks };
  const tokens = await client.authorizationCodeGrant(config, returned, checks);
  seen.push(tokens.claims().sub);
  if (change.replay) await client.authorizationCodeGrant(config, returned, checks);
  seen.push(await client.fetchUserInfo(config, tokens.access_token, change.subject ?? "ada"));
  const fresh = await client.refreshTokenGrant(config, change.refreshToken ?? tokens.refresh_token);
  if (change.reuse) await client.refreshTokenGrant(config, tokens.refresh_token);
  await client.tokenRevocation(config, fresh.refresh_token);
  await client.fetchUserInfo(config, fresh.access_token, "ada").catch((error) => seen.push(error.status));
  seen.push(client.buildEndSessionUrl(config, { id_token_hint: tokens.id_token }).pathname);
}

const codeOf = (error) => error.error ?? error.cause?.error ?? error.code ?? error.cause?.code ?? String(error);
await flow().then(
  () => console.log(JSON.stringify({ seen })),
  (error) => console.log(JSON.stringify({ seen, error: codeOf(error), message: String(error.cause ?? error) })),
);
