"""The apps that sessions start with: found, fetched, unpacked, served. Knows nothing of devices and controllers."""
