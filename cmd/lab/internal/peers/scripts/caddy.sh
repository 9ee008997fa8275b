# needs caddy
# Caddy before the upstream. Argument: "tls" or none.
scheme=http:// tls=
if [ "$1" = tls ]; then
	scheme= tls="tls cert.pem cert.pem"
fi
cat >conf <<END
{
	admin off
	auto_https off
	servers {
		protocols h1 h2 h2c
	}
	log {
		level ERROR
	}
}
$scheme:8080 {
	$tls
	reverse_proxy $UPSTREAM {
		flush_interval -1
	}
}
END
exec caddy run --adapter caddyfile --config conf
