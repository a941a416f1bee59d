// Installs the browser to the current directory with the npm command in its arguments; `chromium` is written last.
import { spawnSync } from 'node:child_process';
import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const ARCHIVES = ['chromium.br', 'al2023.tar.br', 'fonts.tar.br', 'swiftshader.tar.br'];

// It finds its libraries and fonts next to itself, wherever the directory is.
const PROGRAM = `#!/bin/sh
here="\${0%/*}"
export LD_LIBRARY_PATH="$here/al2023/lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FONTCONFIG_FILE="$here/fonts/fonts.conf"
exec "$here/headless_shell" "$@"
`;

// The system's fonts come first: they may cover more languages.
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

/** Run a program; if it fails, print why and exit with its status. */
function run(program, ...args) {
  const { error, status, signal } = spawnSync(program, args, { stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) {
    console.error(`${program} exited with ${signal ?? `exit status ${status}`}`);
    process.exit(status || 1);
  }
}

run(...process.argv.slice(2));
process.env.TMPDIR = process.cwd(); // the directory that the package unpacks to
const { inflate } = await import('@sparticuz/chromium');
for (const name of ARCHIVES) await inflate(`node_modules/@sparticuz/chromium/bin/${name}`);
renameSync('chromium', 'headless_shell');
writeFileSync('fonts/fonts.conf', FONTS);
writeFileSync('program', PROGRAM);
chmodSync('program', 0o755);
run('./program', '--version'); // fails now if the system lacks a library
rmSync('node_modules', { recursive: true });
renameSync('program', 'chromium');
