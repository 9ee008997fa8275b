# needs nginx /usr/sbin/php-fpm*
# nginx and php-fpm in one container, connected by a Unix socket.
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
}
END
for fpm in /usr/sbin/php-fpm*; do :; done
cat >fpm.conf <<END
[global]
error_log = /dev/stderr
daemonize = no
process_control_timeout = 40s
[www]
user = root
group = root
listen = $PWD/fpm.sock
chdir = $PWD
pm = static
pm.max_children = 8
php_admin_value[output_buffering] = 0
END
cat >app.php <<'END'
<?php
function seconds($text) {
    return str_ends_with($text, "ms") ? (float)$text / 1000 : (float)$text;
}

// pause sleeps on after a signal, which ends usleep.
function pause($text) {
    $end = microtime(true) + seconds($text);
    while (($left = $end - microtime(true)) > 0) {
        usleep((int)(1e6 * $left) + 1);
    }
}

pause($_GET["think"] ?? "0s");
$size = max((int)($_GET["size"] ?? 6), 6);
$count = (int)($_GET["count"] ?? 1);
for ($i = 0; $i < $count; $i++) {
    echo str_repeat("x", $size);
    flush();
    if ($i + 1 < $count) {
        pause($_GET["each"] ?? "0s");
    }
}
END
"$fpm" --allow-to-run-as-root --fpm-config "$PWD/fpm.conf" &
until test -S fpm.sock; do sleep 0.1; done
exec nginx -c "$PWD/conf"
