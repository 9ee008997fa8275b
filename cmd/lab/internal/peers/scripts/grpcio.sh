# needs /usr/bin/python3 /usr/lib/python3/dist-packages/grpc
# gRPC's C-core: answers as talk in grpc.go. Names go to standard output.
cat >server.py <<'END'
import grpc, os, time
from concurrent import futures

def seconds(text):
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1])

def talk(requests, context):
    for request in requests:  # a StringValue: a tag, a length below 128, the string
        think, count, *name = request[2:].decode().split()
        for _ in range(int(count)):
            if name:
                print(*name, flush=True)
            time.sleep(seconds(think))
            yield b"\n\xc8\x01" + b"x" * 200  # a BytesValue

class Talk(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.stream_stream_rpc_method_handler(talk)

server = grpc.server(futures.ThreadPoolExecutor(200))
server.add_generic_rpc_handlers((Talk(),))
server.add_insecure_port((os.environ.get("HOST") or "0.0.0.0") + ":8080")
server.start()
server.wait_for_termination()
END
exec /usr/bin/python3 server.py
