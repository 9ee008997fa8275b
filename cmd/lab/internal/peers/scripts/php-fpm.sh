# needs /usr/sbin/php-fpm*
# php-fpm with the number of children that is the argument.
for fpm in /usr/sbin/php-fpm*; do :; done
cat >fpm.conf <<END
[global]
error_log = /dev/stderr
daemonize = no
process_control_timeout = 40s
[www]
user = root
group = root
listen = 0.0.0.0:8080
chdir = $PWD
pm = static
pm.max_children = $1
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
exec "$fpm" --allow-to-run-as-root --fpm-config "$PWD/fpm.conf"
