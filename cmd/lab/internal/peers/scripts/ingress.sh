# needs nginx haproxy bash
# An ingress, nginx or haproxy by the argument, at $HOST:8090. It keeps connections to $SERVER, and
# lets go once the file "gone" is there: $UPSTREAM gets the requests.
if [ "$1" = nginx ]; then
# include nginx.part
	cat >site <<END
upstream app {
    server $SERVER;
    keepalive 32;
}
server {
    listen $HOST:8090;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location / {
        if (-f $PWD/gone) { proxy_pass http://$UPSTREAM; }
        proxy_pass http://app;
    }
}
END
	exec nginx -c "$PWD/conf"
fi
cat >conf <<END
global
    stats socket ipv4@$HOST:8092 level admin
defaults
    mode http
    timeout client 300s
    timeout connect 5s
    timeout server 300s
frontend web
    bind $HOST:8090
    default_backend apps
backend apps
    http-reuse safe
    server app $SERVER
    server other $UPSTREAM backup
END
(
	until [ -e gone ]; do sleep 0.1; done
	exec bash -c 'exec 3<>/dev/tcp/$HOST/8092; echo "set server apps/app state maint" >&3; cat <&3'
) &
exec haproxy -db -f conf
