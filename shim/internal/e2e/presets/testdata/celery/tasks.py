import socket
import urllib.request
from celery import Celery, signals

app = Celery("tasks", broker="filesystem://")
app.conf.broker_transport_options = {"data_folder_in": "DIR", "data_folder_out": "DIR"}

@app.task
def job():
    with open("DIR/answer", "wb") as answer:
        answer.write(urllib.request.urlopen("http://127.0.0.1:BACKEND/").read())

@signals.worker_ready.connect
def listen(**_):
    global ready
    ready = socket.create_server(("127.0.0.1", PORT))
