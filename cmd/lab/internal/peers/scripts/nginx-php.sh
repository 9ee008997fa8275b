# needs nginx /usr/sbin/php-fpm*
# nginx and php-fpm in one container, connected by a Unix socket.
# include nginx.part
cat >site <<END
server {
    listen 8080;
    location / {
        fastcgi_pass unix:$PWD/fpm.sock;
        fastcgi_read_timeout 300s;
        fastcgi_buffering off;
        fastcgi_param SCRIPT_FILENAME $PWD/app.php;
        fastcgi_param QUERY_STRING \$query_string;
        fastcgi_param REQUEST_METHOD \$request_method;
    }
}
END
listen=$PWD/fpm.sock
# include php-fpm.part
"$fpm" --allow-to-run-as-root --fpm-config "$PWD/fpm.conf" &
until test -S fpm.sock; do sleep 0.1; done
exec nginx -c "$PWD/conf"
