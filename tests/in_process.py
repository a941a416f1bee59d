"""Calls an ASGI application in this process, without a network."""

import asyncio

import httpx
from starlette.types import ASGIApp


def transport_of(app: ASGIApp) -> httpx.MockTransport:
    """Return a transport for ``DeviceClient`` that calls the application."""

    async def answer(request: httpx.Request) -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=request.url
        ) as client:
            return await client.send(request)

    def handle(request: httpx.Request) -> httpx.Response:
        reply = asyncio.run(answer(request))
        return httpx.Response(
            reply.status_code, headers=reply.headers, content=reply.content
        )

    return httpx.MockTransport(handle)
