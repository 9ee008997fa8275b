# needs uvicorn
# Arguments: uvicorn's flags. USR2 is --on-stop=USR2 of docs/servers.md.
cat >served.py <<'END'
import asyncio
from urllib.parse import parse_qs
from leave import Leave

def seconds(text):
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1])

async def answer(scope, receive, send):
    query = {k: v[0] for k, v in parse_qs(scope["query_string"].decode()).items()}
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(seconds(query.get("think", "0s")))
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for i in range(int(query.get("count", 1))):
        piece = b"x" * max(int(query.get("size", 6)), 6)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(seconds(query.get("each", "0s")))
    await send({"type": "http.response.body"})

app = Leave(answer)
END
cat >leave.py <<'END'
import signal
class Leave:
    def __init__(self, app):
        self.app, self.leaving = app, []
        signal.signal(signal.SIGUSR2, lambda *_: self.leaving.append((b"connection", b"close")))
    async def __call__(self, scope, receive, send):
        async def told(message):
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self.leaving]
            await send(message)
        await self.app(scope, receive, told)
END
exec uvicorn --app-dir="$PWD" --host="${HOST:-0.0.0.0}" --port=8080 --lifespan=off --log-level=error \
    --timeout-keep-alive=300 "$@" served:app
