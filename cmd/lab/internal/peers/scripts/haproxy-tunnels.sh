# needs haproxy
# HAProxy accepts two connections at a time; further ones wait in the kernel.
cat >conf <<END
global
    maxconn 2
defaults
    mode tcp
    timeout client 300s
    timeout connect 5s
    timeout server 300s
frontend web
    bind :8080
    default_backend apps
backend apps
    server app $UPSTREAM
END
exec haproxy -db -f conf
