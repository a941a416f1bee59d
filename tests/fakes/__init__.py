"""Stand-ins for what the code under test talks to, shared by tests of several packages.

- ``browser_pipe``: ``FakeBrowserPipe``, a browser at the other end of its pipe
- ``clock``: ``FakeClock`` and ``FakeCalendar``, which tests advance
- ``devices``: ``FakeDevice`` and ``FakeBrowserDevice``, devices in memory; ``FakeRunner``, which gives them to sessions
- ``http_server``: ``ScriptedServer``, any program with an HTTP interface, such as a controller or a registry
- ``local_service``: ``InProcessService``, the application of the local service, called without a network
- ``machine``: ``FakeMachine``, a user's machine with emulators, simulators and browsers; ``LocalDevices`` of a service on it
- ``network``: ``FakeNetwork``, between clients and that service: loses, delays and replaces requests and responses
- ``programs``: ``FakeProgram``, a command-line program such as adb
- ``reporter``: ``RecordingReporter``, the terminal and the files of a run

The service itself is never faked: tests use the real one, in their own process or in another.
"""
