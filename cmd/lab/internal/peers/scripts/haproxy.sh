# needs haproxy
# HAProxy before the upstream. Arguments: "sparing", which closes a kept connection with its next
# answer only, or "master", with workers; and the words of bind after the port.
option= flags=-db
case $1 in
master) flags="-W -db"; shift ;;
sparing) option="option idle-close-on-response"; shift ;;
esac
cat >conf <<END
defaults
    mode http
    $option
    timeout client 300s
    timeout http-keep-alive 300s
    timeout connect 5s
    timeout server 300s
    timeout tunnel 300s
frontend web
    bind $HOST:8080 $*
    http-request return status 200 content-type text/plain string served if { path /static }
    default_backend apps
backend apps
    server app $UPSTREAM
END
exec haproxy $flags -f conf
