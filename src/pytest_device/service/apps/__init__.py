"""The apps that sessions start with: finds, downloads, unpacks, serves them. Independent of devices and controllers."""
