# needs haproxy
# HAProxy before the other server.
cat >conf <<END
defaults
    mode http
    timeout client 300s
    timeout http-keep-alive 300s
    timeout connect 5s
    timeout server 300s
frontend web
    bind $HOST:8080
    default_backend apps
backend apps
    server app $OTHER:8080
END
exec haproxy -W -db -f conf
