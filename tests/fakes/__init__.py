"""Stand-ins for what the code under test talks to, shared by tests of several packages.

- ``clock``: clocks that tests advance
- ``devices``: devices in memory, and a runner of the local service that has them
- ``http_server``: servers on this machine, with replies set by a test
- ``local_service``: the local service in this process
- ``network``: a network between clients and that service, which a test disturbs
- ``programs``: command-line programs, such as adb, that print what a test says
- ``reporter``: a reporter that remembers what it gets

The service itself is never faked: tests use the real one, in their own process or in another.
"""
