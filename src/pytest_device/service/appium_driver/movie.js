// A QuickTime movie of JPEG images: it needs no encoder, and most players support it.

const TIMESCALE = 1000;
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000];
const INCH = 0x480000; // 72 dots
const NO_COLOUR_TABLE = 0xffff;
const UNKNOWN_LANGUAGE = 0x55c40000;

/** Return a movie of at least one frame: [{ jpeg, ms }], each shown for some milliseconds. */
export function movieOf(frames) {
  const head = box('ftyp', text('qt  '), words(0x20050300), text('qt  '));
  const media = box('mdat', ...frames.map(({ jpeg }) => jpeg));
  return Buffer.concat([head, media, moov(frames, head.length + 8)]);
}

/** Return whether some bytes are a JPEG image. */
export function isJpeg(bytes) {
  return bytes[0] === 0xff && bytes[1] === 0xd8;
}

function moov(frames, start) {
  const duration = frames.reduce((sum, { ms }) => sum + ms, 0);
  const { width, height } = sizeOf(frames[0].jpeg);
  const plain = [0x10000, 0x1000000, 0, 0, ...MATRIX, 0, 0, 0, 0, 0, 0]; // normal speed and volume
  const mvhd = full('mvhd', 0, words(0, 0, TIMESCALE, duration, ...plain, 2));
  const tkhd = full('tkhd', 7, words(0, 0, 1, 0, duration, 0, 0, 0, 0, ...MATRIX, width << 16, height << 16));
  const mdhd = full('mdhd', 0, words(0, 0, TIMESCALE, duration, UNKNOWN_LANGUAGE));
  const hdlr = full('hdlr', 0, text('mhlrvide'), words(0, 0, 0), Buffer.alloc(1));
  const dinf = box('dinf', full('dref', 0, words(1), full('url ', 1)));
  const minf = box('minf', full('vmhd', 1, words(0, 0)), dinf, samples(frames, start, width, height));
  return box('moov', mvhd, box('trak', tkhd, box('mdia', mdhd, hdlr, minf)));
}

function samples(frames, start, width, height) {
  const offsets = [];
  for (let at = start, index = 0; index < frames.length; index += 1) {
    offsets.push(at);
    at += frames[index].jpeg.length;
  }
  const many = frames.length;
  return box(
    'stbl',
    full('stsd', 0, words(1), description(width, height)),
    full('stts', 0, words(many, ...frames.flatMap(({ ms }) => [1, ms]))),
    full('stsc', 0, words(1, 1, 1, 1)),
    full('stsz', 0, words(0, many, ...frames.map(({ jpeg }) => jpeg.length))),
    full('stco', 0, words(many, ...offsets)),
  );
}

function description(width, height) {
  const names = Buffer.alloc(32);
  return box(
    'jpeg', words(0, 1, 0, 0, 0, 0x200), halves(width, height), words(INCH, INCH, 0), halves(1), names,
    halves(24, NO_COLOUR_TABLE),
  );
}

/** Return the size of a JPEG image, from its first frame header. */
function sizeOf(jpeg) {
  for (let at = 2; at < jpeg.length - 8; at += 2 + jpeg.readUInt16BE(at + 2)) {
    const isFrame = jpeg[at + 1] >= 0xc0 && jpeg[at + 1] <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(jpeg[at + 1]);
    if (isFrame) return { height: jpeg.readUInt16BE(at + 5), width: jpeg.readUInt16BE(at + 7) };
  }
  throw new Error('a screenshot has no size');
}

function box(type, ...parts) {
  const body = Buffer.concat(parts);
  return Buffer.concat([words(body.length + 8), text(type), body]);
}

function full(type, flags, ...parts) {
  return box(type, words(flags), ...parts);
}

function words(...numbers) {
  const bytes = Buffer.alloc(4 * numbers.length);
  numbers.forEach((number, index) => bytes.writeUInt32BE(number >>> 0, 4 * index));
  return bytes;
}

function halves(...numbers) {
  const bytes = Buffer.alloc(2 * numbers.length);
  numbers.forEach((number, index) => bytes.writeUInt16BE(number, 2 * index));
  return bytes;
}

const text = (characters) => Buffer.from(characters, 'latin1');
