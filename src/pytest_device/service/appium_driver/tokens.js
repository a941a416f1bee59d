// Splits the text of a locator into tokens.

const KINDS = [
  ['space', /\s+/y],
  ['string', /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y],
  ['number', /-?\d+(?:\.\d+)?/y],
  ['word', /[A-Za-z_][\w]*/y],
  ['sign', /&&|\|\||==|!=|<>|<=|>=|=<|=>|\*\*|[-=<>!(){}[\],.;/*`$]/y],
];
const ESCAPES = { n: '\n', t: '\t', r: '\r' };

export class Tokens {
  /** `unquote` returns the value of a string, which is passed with its quotes; by default, backslashes escape as in C. */
  constructor(text, unquote = unescaped) {
    this.text = text;
    this.tokens = [...cut(text, unquote)];
    this.at = 0;
  }

  get next() {
    return this.tokens[this.at] ?? { kind: 'end', value: '', start: this.text.length };
  }

  take() {
    const token = this.next;
    this.at += 1;
    return token;
  }

  /** Take the next token if it is this sign or word, ignoring case; return whether it was. */
  took(value) {
    const { next } = this;
    const is = (next.kind === 'sign' || next.kind === 'word') && next.value.toLowerCase() === value.toLowerCase();
    if (is) this.at += 1;
    return is;
  }

  /** Return whether a sign follows the next token. */
  precedes(value) {
    return this.tokens[this.at + 1]?.value === value;
  }

  expect(value) {
    if (!this.took(value)) this.fail(`${value} was expected`);
  }

  /** Take the next token, which must be of this kind. */
  a(kind) {
    if (this.next.kind !== kind) this.fail(`a ${kind} was expected`);
    return this.take().value;
  }

  fail(why) {
    const rest = this.text.slice(this.next.start);
    throw new SyntaxError(`${why} at ${rest ? JSON.stringify(rest) : 'its end'}`);
  }
}

function* cut(text, unquote) {
  for (let at = 0; at < text.length; ) {
    const match = matchAt(text, at);
    if (!match) throw new SyntaxError(`syntax error: ${JSON.stringify(text.slice(at))}`);

    const { kind, end } = match;
    const value = text.slice(at, end);
    if (kind !== 'space') yield { kind, value: kind === 'string' ? unquote(value) : value, start: at };
    at = end;
  }
}

/** Return the kind and the end of the token at an index, or null if none begins there. */
function matchAt(text, at) {
  for (const [kind, pattern] of KINDS) {
    pattern.lastIndex = at;
    if (pattern.test(text)) return { kind, end: pattern.lastIndex };
  }

  return null;
}

function unescaped(text) {
  return text.slice(1, -1).replace(/\\(u[0-9a-fA-F]{4}|.)/gs, (_, code) => {
    return code.length > 1 ? String.fromCharCode(parseInt(code.slice(1), 16)) : ESCAPES[code] ?? code;
  });
}
