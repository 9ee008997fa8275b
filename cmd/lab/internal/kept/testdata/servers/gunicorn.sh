# needs gunicorn
cat >app.py <<'END'
import os, time
from urllib.parse import parse_qs

def application(environ, start_response):
    environ["wsgi.input"].read()
    query = parse_qs(environ["QUERY_STRING"])
    os.write(1, query["name"][0].encode() + b"\n")
    time.sleep(float(query["think"][0][:-len("ms")]) / 1000)
    start_response("200 OK", [("Content-Length", "6")])
    return [b"served"]
END
exec gunicorn --bind="$HOST:8080" --worker-tmp-dir="$PWD" --worker-class=gthread --workers=1 --threads=32 \
	--keep-alive=300 app:application
