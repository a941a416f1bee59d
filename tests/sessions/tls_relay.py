"""TLS in front of a server without it: the tests' Redis is built without TLS."""

import asyncio
import ssl
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

import trustme


@contextmanager
def tls_relay(port: int, certificate: trustme.LeafCert) -> Generator[int]:
    """Forward encrypted connections from the yielded port to this one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    ready: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(
                _pass_on(reader, to_server), _pass_on(from_server, writer)
            )
        finally:
            for end in (to_server, writer):
                end.transport.abort()

    async def serve() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
        over = asyncio.Event()
        ready.set_result(
            (server.sockets[0].getsockname()[1], asyncio.get_running_loop(), over)
        )
        await over.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    own_port, loop, over = ready.result(timeout=60)
    try:
        yield own_port
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):  # either side may hang up
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()
