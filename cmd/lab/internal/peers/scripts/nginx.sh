# needs nginx
# nginx before the upstream. Arguments: the words of listen after the port.
# include nginx.part
cat >site <<END
server {
    listen ${HOST:-*}:8080 $*;
    location / { proxy_pass http://$UPSTREAM; proxy_buffering off; proxy_request_buffering off; }
    location /static { return 200 served; }
}
END
exec nginx -c "$PWD/conf"
