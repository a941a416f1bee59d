// Refuses argent's request for its newest version, which it sends at each start. It has no setting for this.
'use strict';

const https = require('node:https');

const { get } = https;
const PACKAGE = '/@swmansion/argent';

https.get = (url, options, ...rest) => {
  if (!String(url).endsWith(PACKAGE)) return get(url, options, ...rest);

  const lookup = (name, _, done) => done(new Error(`no request for a newer version to ${name}`));
  return get(url, { ...options, lookup }, ...rest);
};
