"""Stand-ins for what the code under test talks to, shared by tests of several packages.

- ``http_server``: servers on this machine, with replies set by a test

The service itself is never faked: tests use the real one, in their own process or in another.
"""
