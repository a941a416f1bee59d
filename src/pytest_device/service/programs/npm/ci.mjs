// Runs the command in its arguments, `npm ci`, on a lock file that names no registry.
//
// For a package without the URL of its archive, npm first downloads the list of all its versions. Nearly all registries
// have the archives at the same paths; for one that has not, npm runs again with the lock file as it is.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const LOCK = 'package-lock.json';
/** npm replaces it by the registry in use. */
const ANY_REGISTRY = 'https://registry.invalid';
const REFUSED = /\bE4\d\d\b/;

function archiveOf(path, { version }) {
  const name = path.split('node_modules/').at(-1);
  return `${ANY_REGISTRY}/${name}/-/${name.split('/').at(-1)}-${version}.tgz`;
}

function run(...more) {
  const [program, ...args] = process.argv.slice(2);
  const { error, status, output } = spawnSync(program, [...args, ...more], { encoding: 'utf8', maxBuffer: Infinity });
  if (error) throw error;
  return { status: status ?? 1, text: output.join('') };
}

const original = readFileSync(LOCK, 'utf8');
const lock = JSON.parse(original);
for (const [path, entry] of Object.entries(lock.packages)) {
  if (path && !entry.inBundle) entry.resolved = archiveOf(path, entry);
}
writeFileSync(LOCK, JSON.stringify(lock));

let { status, text } = run('--replace-registry-host=always');
writeFileSync(LOCK, original);
if (status !== 0 && REFUSED.test(text)) ({ status, text } = run());

process.stdout.write(text);
process.exitCode = status;
