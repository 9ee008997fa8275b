# needs haproxy
# HAProxy before the upstream. Arguments: the words of bind after the port, and "sparing",
# which closes a kept connection with its next answer only.
option=
case $1 in
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
    bind :8080 $*
    http-request return status 200 content-type text/plain string served if { path /static }
    default_backend apps
backend apps
    server app 10.9.0.1:9000
END
exec haproxy -db -f conf
