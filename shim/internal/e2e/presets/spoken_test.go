package presets_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// spoken are what servers speak, as they answer when they are asked, by cases of servers, or by commands of
// their own: "alone" is HTTP/2, "both" HTTP/1 too, which "perhaps" an application that takes
// its time answers, "relay" a proxy that copies bytes before a server of HTTP/2, and
// else it is the beginning of what is said of a port of --goaway.
const spoken = `
	case              | speaks                       | files   | needs                     | first | command
	haproxy           | both                         |         |                           |       |
	haproxy-h2        | alone                        | haproxy | haproxy                   | sed -i 's/PORT/PORT proto h2/' DIR/conf | haproxy -db -f DIR/conf
	haproxy-tcp       | relay                        | haproxy | haproxy                   | sed -i 's/mode http/mode tcp/; s/gate .*/gate 127.0.0.1:OTHER/' DIR/conf | sh -c 'SELF helper serve OTHER h2 & exec haproxy -db -f DIR/conf'
	haproxy-tcp-proxy | relay                        | haproxy | haproxy                   | sed -i 's/mode http/mode tcp/; s/gate .*/gate 127.0.0.1:OTHER send-proxy/' DIR/conf | sh -c 'SELF helper serve OTHER h2 proxied & exec haproxy -db -f DIR/conf'
	nginx             | ("HTTP/1.1 400 Bad Request   |         |                           |       |
	nginx-h2          | alone                        | nginx   | nginx                     | sed -i 's/PORT;/PORT http2;/' DIR/conf | nginx -c DIR/conf -g 'daemon off;'
	nginx-stream      | relay                        | stream  | nginx /usr/lib/nginx/modules/ngx_stream_module.so | | sh -c 'SELF helper serve OTHER h2 & exec nginx -c DIR/conf -g "daemon off;"'
	httpd             | (                            |         |                           |       |
	php-fpm           | (                            |         |                           |       |
	uwsgi             | (                            |         |                           |       |
	gunicorn          | (                            |         |                           |       |
	uvicorn           | (                            |         |                           |       |
	hypercorn         | perhaps both                 |         |                           |       |
	unicorn           | (                            |         |                           |       |
	puma              | (                            |         |                           |       |
	caddy             | (                            |         |                           |       |
	go                | (                            |         |                           |       |
	go-both           | both                         |         |                           |       | SELF helper serve PORT both
	go-h2             | alone                        |         |                           |       | SELF helper serve PORT h2
	varnish           | (                            |         |                           |       |
	node              | (                            |         |                           |       |
	node-h2           | alone                        |         | node                      |       | node -e 'require("http2").createServer((q, r) => r.end()).listen(PORT, "127.0.0.1")'
	java              | (                            |         |                           |       |
	tomcat            | (                            |         |                           |       |
	postgres          | (                            |         |                           |       |
	pgbouncer         | (                            |         |                           |       |
	mariadb           | (                            |         |                           |       |
	redis             | ("-ERR unknown command       |         |                           |       |
	memcached         | (closes the connection       |         | memcached                 |       | memcached -u root -l 127.0.0.1 -p PORT
	nats              | (                            |         |                           |       |
	socat             | relay                        |         | socat                     |       | sh -c 'SELF helper serve OTHER h2 & until socat /dev/null TCP:127.0.0.1:OTHER; do sleep 0.02; done; exec socat TCP-LISTEN:PORT,bind=127.0.0.1,fork,reuseaddr TCP:127.0.0.1:OTHER'
	nghttpd           | alone                        |         | nghttpd                   |       | nghttpd --no-tls -a 127.0.0.1 PORT
	nghttpx           | both                         |         | nghttpx nghttpd           |       | sh -c 'nghttpd --no-tls -a 127.0.0.1 OTHER & exec nghttpx -f127.0.0.1,PORT\;no-tls -b127.0.0.1,OTHER\;\;proto=h2 --workers=1'
	grpcio            | alone                        | grpcio  | /usr/lib/python3/dist-packages/grpc |   | /usr/bin/python3 DIR/server.py
`

// TestSpoken asks real servers what they speak, while a client keeps a connection: GOAWAY is meant for those
// of HTTP/2, the user is warned of the others, and with --close-idle only HTTP/2 alone is found.
func TestSpoken(t *testing.T) {
	rows := map[string]box.Row{}
	for _, c := range box.Table(servers) {
		rows[c["case"]] = c
	}
	box.Each(t, spoken, func(t *testing.T, c box.Row) {
		of := c
		if c["command"] == "" {
			of = rows[c["case"]]
		}
		want := map[string]string{"alone": "", "perhaps both": "", "both": "also speaks HTTP/1", "relay": "is that of a proxy that copies the bytes"}
		says, isHTTP2 := want[c["speaks"]]
		if !isHTTP2 {
			says = "does not speak HTTP/2 without TLS " + c["speaks"]
		}
		for _, flag := range []string{"--goaway=PORT", "--goaway=auto"} {
			s, b := start(t, of, "--until=quiet --quiet-for=3 --grace-period=30 --log-level=info "+flag)
			if other := s.names.Replace("127.0.0.1:OTHER"); strings.Contains(of["command"], "OTHER") && c["case"] != "haproxy-tcp-proxy" {
				testutil.Eventually(t, "the server behind listens", func() bool { return box.Accepts(nil, other) })
			}
			client, err := net.Dial("tcp", s.addr())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if isHTTP2 { // it has accepted the connection by its answer
				io.WriteString(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
				io.ReadFull(client, make([]byte, 9))
			}
			if c["case"] == "httpd" { // which has connections without a byte wait (TCP_DEFER_ACCEPT)
				io.WriteString(client, "\r\n")
			}
			if flag == "--goaway=auto" && c["speaks"] != "relay" {
				says = ""
			}
			b.Signal(sig.TERM)
			line := b.Err.Wait(fmt.Sprintf("port %d ", s.port)).Text
			isWarning := strings.Contains(line, `"level":"warn"`)
			if said := box.ParseReport(line).Message; isWarning != (says != "") || !strings.Contains(said, says) {
				t.Errorf("%s: %s, want a warning with %q", flag, line, says)
			}
			b.Signal(sig.KILL)
			b.WaitExit()
		}
	})
}
