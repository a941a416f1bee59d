// Makes a server that would listen on Appium's port listen on a socket in a private directory instead.
// Appium itself has no option for it, and a plugin would have to be installed in the user's Appium home.
'use strict';

const { Server } = require('node:net');

const PORT = 4723;
const path = process.env.PYTEST_DEVICE_SOCKET;
const { listen } = Server.prototype;

Server.prototype.listen = function (port, ...rest) {
  return Number(port) === PORT ? listen.call(this, { path }) : listen.call(this, port, ...rest);
};
