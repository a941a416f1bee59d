// A provider that does not know this project: it signs one user in and consents without asking.
import http from "node:http";
import Provider from "oidc-provider";

const server = http.createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "app",
      application_type: "native",
      token_endpoint_auth_method: "none",
      redirect_uris: ["http://127.0.0.1/callback"],
      grant_types: ["authorization_code", "refresh_token"],
    },
    {
      client_id: "server",
      client_secret: "s p~/+%:x",
      redirect_uris: ["https://app.example/callback"],
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  cookies: { keys: ["for a test"] },
  features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  rotateRefreshToken: true,
  ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, IdToken: 3600, Interaction: 60, RefreshToken: 3600, Session: 3600 },
});

async function finish(request, response) {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId: "ada" } });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

const answer = provider.callback();
server.on("request", (request, response) => {
  if (!request.url.startsWith("/interaction/")) return answer(request, response);
  finish(request, response).catch((error) => response.writeHead(500).end(String(error)));
});
process.stdin.on("end", () => process.exit()).resume();
console.log(JSON.stringify({ issuer }));
