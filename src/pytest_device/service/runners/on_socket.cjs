// Makes an HTTP server listen on a Unix socket in a private directory instead of a port.
// The controllers have no option for this.
'use strict';

const { Server: HttpServer } = require('node:http');
const { Server } = require('node:net');

const { PYTEST_DEVICE_SOCKET: path, PYTEST_DEVICE_PORT: PORT } = process.env;
const { listen } = Server.prototype;
let isListening = false;

Server.prototype.listen = function (port, ...rest) {
  if (isListening || String(port) !== PORT || !(this instanceof HttpServer)) return listen.call(this, port, ...rest);

  isListening = true;
  // They report the port that they listen on, and fail with a path.
  this.address = () => ({ address: '127.0.0.1', family: 'IPv4', port: 1 });

  return listen.call(this, { path }, rest.at(-1));
};
