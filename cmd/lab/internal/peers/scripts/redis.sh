# needs redis-server
exec redis-server --port 8080 ${HOST:+--bind "$HOST"} --save "" --protected-mode no --enable-debug-command yes
