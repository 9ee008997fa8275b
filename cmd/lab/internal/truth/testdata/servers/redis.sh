# needs redis-server
exec redis-server --port 8080 --save "" --protected-mode no --enable-debug-command yes
