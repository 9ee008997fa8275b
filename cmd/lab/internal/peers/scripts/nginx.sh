# needs nginx
# nginx before the upstream. Arguments: "renew", which closes a connection with the first answer
# that comes 4 s after its first request, and the words of listen after the port.
# include nginx.part
renew=
[ "$1" != renew ] || { renew="keepalive_time 4s;"; shift; }
cat >site <<END
server {
    $renew
    listen ${HOST:-*}:8080 $*;
    location / { proxy_pass http://$UPSTREAM; proxy_buffering off; proxy_request_buffering off; }
    location /static { return 200 served; }
}
END
exec nginx -c "$PWD/conf"
