# needs
# A server of the laboratory: of lines (raw), HTTP (http) or gRPC (grpc), and further words.
exec "$LAB" serve "$HOST:${PORT:-8080}" "$@"
