# needs rsyslogd
cat >conf <<END
global(net.enableDNS="off")
module(load="imtcp")
input(type="imtcp" port="8080")
action(type="omfile" file="$PWD/log")
END
exec rsyslogd -n -f "$PWD/conf" -i "$PWD/pid"
