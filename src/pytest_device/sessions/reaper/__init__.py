"""The process that sends every create and stop call, and outlives the run to stop the sessions that it leaves behind.

Standard library only: it runs as ``python -I -S``, and stays small.

    run  --requests-->  loop  --calls-->  sender  --HTTP-->  service

``supervisor`` decides; ``loop`` moves its messages, without threads; ``sender`` is a child process that exists only
while there are calls to send, so that HTTP and TLS do not occupy memory during a test; ``http`` makes one bounded call;
``messages`` defines the protocol. Where no reaper can run, ``channel`` does its work inside the run.
"""
