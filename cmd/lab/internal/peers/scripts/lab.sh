# needs
# A server of the laboratory: of lines (raw), HTTP (http) or gRPC (grpc), and further words.
exec "$LAB" truth serve "$@"
