// A WebM video of VP8 key frames: WebP images contain them, and every browser plays it.

const TRACK = 1;
const MS_IN_NS = 1_000_000;
const KEY_FRAME = 0x80;
const EBML = 0x1a45dfa3;
const SEGMENT = 0x18538067;

/**
 * Return a video of at least one frame: [{ vp8, at }], each shown from `at` milliseconds until the next one, and the
 * last one until `end`.
 */
export function webmOf(frames, { width, height, end }) {
  const start = frames[0].at;
  // Players end a video with its last frame.
  const all = [...frames, { vp8: frames.at(-1).vp8, at: Math.max(end, frames.at(-1).at + 1) }];
  const clusters = all.map(({ vp8, at }) => cluster(vp8, at - start));
  const times = all.map(({ at }) => at - start);

  const head = Buffer.concat([info(times.at(-1)), tracks(width, height)]);
  // The index comes before what it points at; its size is the same whatever it points at.
  const length = head.length + cues(times, clusters, 0).length;
  return Buffer.concat([
    element(EBML, [
      element(0x4286, number(1)), element(0x42f7, number(1)), element(0x42f2, number(4)), element(0x42f3, number(8)),
      element(0x4282, text('webm')), element(0x4287, number(2)), element(0x4285, number(2)),
    ]),
    element(SEGMENT, [head, cues(times, clusters, length), ...clusters]),
  ]);
}

/** Return the VP8 frame in a WebP image (RFC 9649, section 2). Throws if it has none. */
export function vp8In(webp) {
  for (let at = 12; at + 8 <= webp.length;) {
    const size = webp.readUInt32LE(at + 4);
    if (webp.toString('latin1', at, at + 4) === 'VP8 ') return webp.subarray(at + 8, at + 8 + size);
    at += 8 + size + (size % 2);
  }
  throw new Error('the browser cannot write lossy WebP images');
}

function info(duration) {
  const ms = Buffer.alloc(8);
  ms.writeDoubleBE(duration);
  const name = text('pytest-device');
  return element(0x1549a966, [
    element(0x2ad7b1, number(MS_IN_NS)), element(0x4d80, name), element(0x5741, name), element(0x4489, ms),
  ]);
}

function tracks(width, height) {
  const video = element(0xe0, [element(0xb0, number(width)), element(0xba, number(height))]);
  return element(0x1654ae6b, [element(0xae, [
    element(0xd7, number(TRACK)), element(0x73c5, number(TRACK)), element(0x83, number(1)), element(0x9c, number(0)),
    element(0x86, text('V_VP8')), video,
  ])]);
}

/** Return the index: where the cluster of each time begins in the segment. */
function cues(times, clusters, start) {
  const points = [];
  let at = start;
  for (const [index, time] of times.entries()) {
    const place = element(0xb7, [element(0xf7, number(TRACK)), element(0xf1, number(at))]);
    points.push(element(0xbb, [element(0xb3, number(time)), place]));
    at += clusters[index].length;
  }
  return element(0x1c53bb6b, points);
}

/** Return a cluster of one frame: times in a cluster are of 16 bits. */
function cluster(vp8, time) {
  const block = [Buffer.from([0x80 | TRACK, 0, 0, KEY_FRAME]), vp8];
  return element(0x1f43b675, [element(0xe7, number(time)), element(0xa3, block)]);
}

function element(id, parts) {
  const body = Buffer.concat([parts].flat());
  const digits = id.toString(16);
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(body.length) | (1n << 56n)); // of 8 bytes
  return Buffer.concat([Buffer.from(digits, 'hex'), size, body]);
}

/** Return an unsigned number of four bytes. */
function number(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(Math.round(value));
  return bytes;
}

const text = (characters) => Buffer.from(characters, 'latin1');
