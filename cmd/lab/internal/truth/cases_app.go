package truth

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// appCases are application servers, and MPTCP.
func appCases() []truthCase {
	return slices.Concat(appSlowCases(), appPlainCases(), appKeptCases(), fastCGICases(), appGracefulCases(), mptcpCases())
}

// appServer is a server with its name in the table and its preset.
type appServer struct {
	name   string
	preset string
	*server
}

var appServers = []appServer{
	{"gunicorn sync", "gunicorn", gunicornSync},
	{"gunicorn gthread", "gunicorn", gunicornThreads},
	{"uwsgi", "uwsgi", uwsgiHTTP},
	{"nginx and php-fpm", "nginx", fpmBehindNginx},
}

// gets plans a request on a fresh connection.
func gets(at time.Duration, path string) func(t *trial) {
	return func(t *trial) {
		site := t.client().site(fresh)
		t.at(at, func() { site.get(path) })
	}
}

// upload makes a counted request with a Content-Length: not all application servers read
// chunks.
func (p *site) upload(path string, body *slowBody) {
	p.t.real(func() error {
		request, err := http.NewRequest("POST", p.base+path, body)
		if err != nil {
			return err
		}
		request.ContentLength = int64(body.size * body.count)
		return p.send(request)
	})
}

func appSlowCases() []truthCase {
	var cases []truthCase
	for i, on := range appServers {
		cases = append(cases, both(
			truthCase{name: on.name + ": 9 s begun at -1 s", server: on.server, quick: i == 0, script: gets(-1*s, "/?think=9s")},
		)...)
		cases = append(cases,
			truthCase{name: on.name + ": a download, a piece each second until +6", server: on.server, script: gets(-2*s, "/?each=1s&count=9&size=1000")},
			truthCase{name: on.name + ": an upload, a piece each second until +6", server: on.server, script: func(t *trial) {
				site := t.client().site(fresh)
				t.at(-2*s, func() { site.upload("/", &slowBody{t, 1 * s, 1000, 8}) })
			}},
			truthCase{name: on.name + ": an answer that pauses for 9 s", server: on.server, limit: pauses, script: gets(-1*s, "/?each=9s&count=2&size=1000")},
		)
	}
	return append(cases, truthCase{name: "gunicorn sync: requests of 3 s that wait for a worker until +8", server: gunicornOne, script: func(t *trial) {
		for i, c := range t.crowd(3) {
			site := c.site(fresh)
			t.at(-1*s+time.Duration(i)*50*ms, func() { site.get("/?think=3s") })
		}
	}})
}

func appPlainCases() []truthCase {
	var cases []truthCase
	for _, on := range appServers {
		cases = append(cases,
			truthCase{name: on.name + ": 5 requests a second until +4", server: on.server, script: func(t *trial) {
				site := t.client().site(fresh)
				t.steady(-2*s, 4*s, 5, func() { site.get("/?think=20ms&size=2000") })
			}},
			truthCase{name: on.name + ": a probe each 2 s", server: on.server, slack: patience(2 * s), script: func(t *trial) {
				site := t.client().site(fresh)
				t.every(-5*s, 60*s, 2*s, func() { site.ping("/healthz") })
			}},
			truthCase{name: on.name + ": TCP checks each second, besides requests until +3", server: on.server, script: func(t *trial) {
				c, site := t.client(), t.client().site(fresh)
				t.every(-5*s, 50*s, s, c.check)
				t.steady(-2*s, 3*s, 5, func() { site.get("/") })
			}},
		)
	}
	return cases
}

func appKeptCases() []truthCase {
	var cases []truthCase
	for _, on := range []appServer{{"gunicorn gthread", "", gunicornThreads}, {"nginx and php-fpm", "", fpmBehindNginx}, {"gunicorn over TLS", "", gunicornTLS}} {
		cases = append(cases,
			truthCase{name: on.name + ": a pool, idle", server: on.server, script: func(t *trial) {
				pool(t, 6, -1*s, 600*ms, "/")
			}},
			truthCase{name: on.name + ": a pool, idle after slow answers", server: on.server, script: func(t *trial) {
				pool(t, 6, -1*s, 600*ms, "/?think=300ms")
			}},
			truthCase{name: on.name + ": a pool, busy until +5", server: on.server, limit: tied, script: func(t *trial) {
				pool(t, 6, 5*s, 600*ms, "/")
			}},
			truthCase{name: on.name + ": 9 s begun at -1 s on a kept connection", server: on.server, script: func(t *trial) {
				site := t.client().site(keep)
				t.at(-3*s, func() { site.get("/") })
				t.at(-1*s, func() { site.get("/?think=9s") })
			}},
		)
	}
	return cases
}

func fastCGICases() []truthCase {
	return append(both(truthCase{name: "php-fpm: 9 s begun at -1 s", server: fpm, quick: true, script: func(t *trial) {
		c := t.client()
		t.at(-1*s, func() { c.fastcgi("think=9s") })
	}}),
		truthCase{name: "php-fpm: 5 requests a second until +4", server: fpm, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 4*s, 5, func() { c.fastcgi("think=20ms&size=2000") })
		}},
		truthCase{name: "php-fpm: a download, a piece each second until +6", server: fpm, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() { c.fastcgi("each=1s&count=9&size=20000") })
		}},
		truthCase{name: "php-fpm: a probe each 2 s", server: fpm, slack: patience(2 * s), script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 60*s, 2*s, func() { t.spare(c.askFastCGI("size=10")) })
		}},
		truthCase{name: "php-fpm: TCP checks each second", server: fpm, script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 50*s, s, c.check)
		}},
	)
}

// appGracefulCases are requests invisible to the hold. No request is lost, since the server
// finishes all requests in flight at its signal.
func appGracefulCases() []truthCase {
	var cases []truthCase
	for i, on := range append(appServers, appServer{"php-fpm", "php-fpm", fpm}) {
		ask := func(t *trial, query string) {
			c := t.client()
			site := c.site(fresh)
			t.at(-1*s, func() {
				if on.server == fpm {
					c.fastcgi(query)
					return
				}
				site.get("/?" + query)
			})
		}
		flags := until("quiet", "--preset="+on.preset)
		cases = append(cases,
			truthCase{name: "graceful: " + on.name + ", an answer that pauses for 9 s", server: on.server, flags: flags, graceful: true, quick: i == 0,
				script: func(t *trial) { ask(t, "think=50ms&each=9s&count=2&size=20000") }},
			truthCase{name: "graceful: " + on.name + ", silent for longer than --max-silence", server: on.server, flags: append(flags, "--max-silence=3"), graceful: true,
				script: func(t *trial) { ask(t, "think=12s") }},
		)
	}
	return append(cases, truthCase{name: "graceful: gunicorn over TLS 1.3, 9 s on a fresh connection", server: gunicornTLS, flags: until("quiet", "--preset=gunicorn"), graceful: true,
		script: gets(-1*s, "/?think=9s")})
}

// mptcpCases have clients with Multipath TCP. Go's listeners accept Multipath TCP by
// default.
func mptcpCases() []truthCase {
	return append(
		both(
			truthCase{name: "MPTCP: 9 s begun at -1 s, a fresh connection", server: raw, script: func(t *trial) {
				c := t.client()
				t.at(-1*s, func() { c.dialMPTCP().ask("answer 9s 100") })
			}},
		),
		truthCase{name: "MPTCP: 9 s begun at -1 s, a kept connection", server: raw, script: func(t *trial) {
			open := sync.OnceValue(t.client().dialMPTCP)
			t.every(-3*s, -1500*ms, 300*ms, func() { open().ask("answer 5ms 100") })
			t.at(-1*s, func() { open().ask("answer 9s 100") })
		}},
		truthCase{name: "MPTCP: a pool, idle", server: raw, quick: true, script: mptcpPool(-1 * s)},
		truthCase{name: "MPTCP: a pool, busy until +5", server: raw, script: mptcpPool(5 * s)},
		truthCase{name: "MPTCP: a connection for each request, 10 a second until +4", server: raw, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 4*s, 10, func() {
				conn := c.dialMPTCP()
				conn.ask("answer 20ms 500")
				conn.stop()
			})
		}},
		truthCase{name: "MPTCP: a download, a piece each second until +6", server: raw, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() {
				c.dialMPTCP().ask("answer 0s 1000 1s 1000 1s 1000 1s 1000 1s 1000 1s 1000 1s 1000 1s 1000 1s 1000")
			})
		}},
	)
}

func mptcpPool(to time.Duration) func(t *trial) {
	return func(t *trial) {
		for i, c := range t.crowd(6) {
			open := sync.OnceValue(c.dialMPTCP)
			t.every(-3*s+time.Duration(i)*50*ms, to, 500*ms, func() { open().ask("answer 5ms 100") })
		}
	}
}

// dialMPTCP connects with Multipath TCP, or with TCP if the kernel has no Multipath TCP.
func (c *client) dialMPTCP() *conn {
	if err := c.open(); err != nil {
		return &conn{t: c.t, err: err}
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.ip}, KeepAlive: -1, Timeout: 5 * s}
	d.SetMultipathTCP(true)
	nc, err := d.DialContext(context.Background(), "tcp", serverAddr())
	return newConn(c.t, nc, err)
}
