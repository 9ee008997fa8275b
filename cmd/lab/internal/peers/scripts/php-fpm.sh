# needs /usr/sbin/php-fpm*
# php-fpm with the number of children that is the argument.
listen=0.0.0.0:8080
# include php-fpm.part
exec "$fpm" --allow-to-run-as-root --fpm-config "$PWD/fpm.conf"
