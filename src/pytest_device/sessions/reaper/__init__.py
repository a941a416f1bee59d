"""The process that sends every create and stop call, and outlives the run to stop what that leaves behind.

Standard library only: it runs as ``python -I -S``, small enough that nobody minds it.

    run  --requests-->  loop  --calls-->  sender  --HTTP-->  service

``supervisor`` decides, ``loop`` moves its messages and has no threads; ``sender`` is a child that exists only while
there is something to send, so that the memory of HTTP and TLS is not held for the length of a test; ``http`` is one
bounded call; ``messages`` defines the protocol. Where there can be no reaper,
``channel`` does its work inside the run.
"""
