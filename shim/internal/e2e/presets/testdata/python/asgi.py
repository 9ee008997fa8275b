import asyncio

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    reader, writer = await asyncio.open_connection("127.0.0.1", BACKEND)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = (await reader.read()).partition(b"\r\n\r\n")[2]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": answer})
