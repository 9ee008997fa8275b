# Sends a request for each line of standard input, a number, a method and a path, and prints the
# number and an error, if any. New connections go to the address in the file "target".
import concurrent.futures, sys
import requests
from urllib3.util import connection

connect = connection.create_connection

def to_target(address, *args, **options):
    with open("target") as file:
        return connect((file.read().split()[0], address[1]), *args, **options)

connection.create_connection = to_target
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=24, pool_block=True))

def ask(number, method, path):
    try:
        answer = session.request(method, "http://lab:8080" + path, data="duck")
        error = "" if answer.status_code == 200 else answer.status_code
    except Exception as err:
        error = err
    print(f"{number} {error}\n", end="", flush=True)

threads = concurrent.futures.ThreadPoolExecutor(24)
for line in sys.stdin:
    threads.submit(ask, *line.split())
