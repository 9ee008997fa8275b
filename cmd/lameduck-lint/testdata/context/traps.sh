php-fpm83 -F & fpm=$!
nginx -g 'daemon off;' & web=$!
stop() { nginx -s quit; wait "$web"; kill -QUIT "$fpm"; wait "$fpm"; exit 0; }
trap stop TERM INT QUIT
wait
