# needs nginx
# nginx before the other server.
cat >conf <<END
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
    server {
        listen $HOST:8080;
        location / { proxy_pass http://$OTHER:8080; }
    }
}
END
exec nginx -c "$PWD/conf"
