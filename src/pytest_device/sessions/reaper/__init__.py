"""The process that sends every create and stop call, and outlives the run to stop what that leaves behind.

Standard library only: it runs as ``python -I -S``, small enough that nobody minds it.

    owner  --commands-->  watch  --calls-->  courier  --HTTP-->  service

``watch`` decides and is one loop without threads; ``courier`` is a child that exists only while there is something to
send, so that the memory of HTTP and TLS is not held for the length of a test; ``call`` is one bounded call.
"""
