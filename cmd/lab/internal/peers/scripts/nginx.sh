# needs nginx
# nginx before the upstream. Arguments: the words of listen after the port.
cat >conf <<END
user root;
daemon off;
worker_processes 2;
pid $PWD/pid;
error_log stderr emerg;
events {}
http {
    access_log off;
    client_body_temp_path $PWD/body;
    proxy_temp_path $PWD/proxy;
    fastcgi_temp_path $PWD/fastcgi;
    uwsgi_temp_path $PWD/uwsgi;
    scgi_temp_path $PWD/scgi;
    keepalive_timeout 300s;
    keepalive_requests 1000000;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate $PWD/cert.pem;
    ssl_certificate_key $PWD/cert.pem;
    server {
        listen ${HOST:-*}:8080 $*;
        location / { proxy_pass http://$UPSTREAM; proxy_buffering off; proxy_request_buffering off; }
        location /static { return 200 served; }
    }
}
END
exec nginx -c "$PWD/conf"
