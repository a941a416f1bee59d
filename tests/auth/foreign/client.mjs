// A client library that does not know this project: it reads flows, one in a line of JSON, and prints how each ended.
import readline from "node:readline";
import * as client from "openid-client";

async function flow({ issuer, clientId, secret, redirectUri, change = {}, timeout = 30 }, seen) {
  const options = { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks], timeout };
  const authentication = () => (secret ? client.ClientSecretBasic(change.secret ?? secret) : client.None());
  const browse = async (url) => {
    const answer = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(timeout * 1000) });
    const text = await answer.text();
    if (![200, 303].includes(answer.status) || !text.trim() !== (answer.status === 303)) throw new Error(`page ${answer.status}`);
    seen.push(answer.headers.get("location")?.split("?")[0] ?? answer.status);
    return answer;
  };

  const config = await client.discovery(new URL(issuer + (change.path ?? "")), clientId, undefined, authentication(), options);
  const verifier = client.randomPKCECodeVerifier();
  const [state, nonce] = [client.randomState(), client.randomNonce()];
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri, scope: "openid profile", state, nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256", ...change.url,
  });
  const returned = new URL((await browse(url)).headers.get("location"));
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, ...change.checks };
  const tokens = await client.authorizationCodeGrant(config, returned, checks);
  seen.push(tokens.claims().sub);
  if (change.replay) await client.authorizationCodeGrant(config, returned, checks);
  seen.push(await client.fetchUserInfo(config, change.accessToken ?? tokens.access_token, change.subject ?? "ada"));
  const fresh = await client.refreshTokenGrant(config, change.refreshToken ?? tokens.refresh_token, change.refresh);
  if (change.reuse) await client.refreshTokenGrant(config, tokens.refresh_token);
  await client.tokenRevocation(config, fresh.refresh_token, change.revocation);
  await client.fetchUserInfo(config, fresh.access_token, "ada").catch((error) => seen.push(error.status));
  const end = { id_token_hint: tokens.id_token, ...change.end };
  await browse(client.buildEndSessionUrl(config, end));
}

const codeOf = (error) => {
  if (error.name === "TimeoutError") return error.name;
  return error.error ?? error.cause?.error ?? error.code ?? error.cause?.code ?? error.message;
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const seen = [];
  const error = await flow(JSON.parse(line), seen).then(() => undefined, codeOf);
  console.log(JSON.stringify({ seen, error }));
}
