# needs redis-server
exec redis-server --bind "$HOST" --port 8080 --save "" --protected-mode no --enable-debug-command yes
