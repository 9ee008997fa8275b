# needs /usr/lib/postgresql/*/bin/postgres /usr/lib/postgresql/*/bin/pg_isready setpriv flock other-users
# PostgreSQL refuses to run as root. The first server makes a database, which all copy.
for bin in /usr/lib/postgresql/*/bin; do :; done
as_postgres=
if [ "$(id -u)" = 0 ]; then
	as_postgres="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
exec 9>"$SHARED/postgres.lock"
flock 9
if [ ! -e "$SHARED/postgres/done" ]; then
	mkdir -p "$SHARED/postgres"
	[ -z "$as_postgres" ] || chown postgres "$SHARED/postgres"
	$as_postgres "$bin/initdb" --no-sync --auth=trust --username=postgres --locale=C --wal-segsize=1 -D "$SHARED/postgres/data" >&2
	echo "host all all all trust" >"$SHARED/postgres/data/pg_hba.conf"
	touch "$SHARED/postgres/done"
fi
exec 9>&-
cp -a "$SHARED/postgres/data" data
touch starting # it listens before it answers
(until "$bin/pg_isready" -q -h "${HOST:-127.0.0.1}" -p 8080; do sleep 0.1; done; rm starting) &
exec $as_postgres "$bin/postgres" -D data -p 8080 -c "listen_addresses=${HOST:-*}" -c unix_socket_directories= \
	-c fsync=off -c shared_buffers=8MB -c log_statement=all -c log_min_error_statement=panic
