# needs /usr/lib/postgresql/*/bin/postgres /usr/lib/postgresql/*/bin/pg_isready
for bin in /usr/lib/postgresql/*/bin; do :; done
touch starting # it listens before it answers
"$bin/initdb" --no-sync --auth=trust --username=postgres --locale=C --wal-segsize=1 -D data >/dev/null
echo "host all all all trust" >data/pg_hba.conf
(until "$bin/pg_isready" -q -h "$HOST" -p 8080; do sleep 0.1; done; rm starting) &
exec "$bin/postgres" -D data -p 8080 -c "listen_addresses=$HOST" -c unix_socket_directories= \
	-c fsync=off -c shared_buffers=8MB -c log_statement=all -c log_min_error_statement=panic
