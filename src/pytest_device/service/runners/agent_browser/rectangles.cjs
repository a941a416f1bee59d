// Preloaded by an agent-device daemon: gives the nodes of a web snapshot the rectangles that our shim adds to it.
//
// On a phone a node has its rectangle. On its platform `web` the daemon drops it, and so can't press a reference or act on
// what it found; to press a selector it asks for each rectangle by a process. If a version of the daemon has other code,
// it is left as it is.
'use strict';

const { registerHooks } = require('node:module');

const MODULE = '/agent-browser-provider.js';
/** In the minified code: keep the rectangle of a node, and do not ask for it by a process. */
const CHANGES = [
  [/\{(index:0,type:\w+,role:\w+,label:[^{}]*?\((\w+),\[)/g, '{rect:$2?.rect,$1'],
  [/\w+\?\.includeRects\?async \w+=>await \w+\(\w+,\w+\):void 0/, 'void 0'],
];

registerHooks?.({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith(MODULE)) return loaded;

    let source = String(loaded.source);
    const isKnown = CHANGES.every(([pattern]) => source.search(pattern) >= 0);
    if (!isKnown) return loaded;

    for (const [pattern, replacement] of CHANGES) source = source.replace(pattern, replacement);

    return { ...loaded, source };
  },
});
