# needs gunicorn
# Arguments: gunicorn's flags.
cat >app.py <<'END'
import os, time
from urllib.parse import parse_qs

def seconds(text):
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1])

def application(environ, start_response):
    query = {k: v[0] for k, v in parse_qs(environ.get("QUERY_STRING", "")).items()}
    time.sleep(seconds(query.get("late", "0s")))
    left = int(environ.get("CONTENT_LENGTH") or 0)
    while left > 0:
        left -= len(environ["wsgi.input"].read(min(left, 1000)))
    if "name" in query:
        os.write(1, query["name"].encode() + b"\n")
    time.sleep(seconds(query.get("think", "0s")))
    size, count = max(int(query.get("size", 6)), 6), int(query.get("count", 1))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(size * count))])
    return body(size, count, seconds(query.get("each", "0s")))

def body(size, count, each):
    for i in range(count):
        yield b"x" * size
        if i + 1 < count:
            time.sleep(each)
END
cat >gunicorn.conf.py <<'END'
import signal
leaving = []
def when_ready(server):
    signal.signal(signal.SIGURG, lambda *_: server.kill_workers(signal.SIGURG))
def post_worker_init(worker):
    signal.signal(signal.SIGURG, lambda *_: leaving.append(True))
def pre_request(worker, request):
    request.must_close = request.must_close or bool(leaving)
END
exec gunicorn --chdir="$PWD" --bind="${HOST:-0.0.0.0}:8080" --worker-tmp-dir="$PWD" --timeout=120 "$@" app:application
