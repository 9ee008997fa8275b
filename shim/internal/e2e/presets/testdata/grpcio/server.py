# A server of gRPC's C-core, without services.
from concurrent import futures

import grpc

server = grpc.server(futures.ThreadPoolExecutor(1))
server.add_insecure_port('127.0.0.1:PORT')
server.start()
server.wait_for_termination()
