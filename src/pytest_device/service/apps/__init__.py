"""The apps that sessions start with: found, downloaded, unpacked, served. Independent of devices and controllers."""
