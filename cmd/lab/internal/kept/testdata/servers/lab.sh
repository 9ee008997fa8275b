# needs
# A server of the laboratory: http, tls or grpc.
exec "$LAB" kept serve "$1" "$HOST:8080"
