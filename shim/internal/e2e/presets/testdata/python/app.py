import urllib.request

def application(environ, start_response):
    answer = urllib.request.urlopen("http://127.0.0.1:BACKEND/").read()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
