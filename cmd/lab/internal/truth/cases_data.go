package truth

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// dataCases are databases, caches, receivers of logs and mail servers.
func dataCases() []truthCase {
	return slices.Concat(postgresCases(), postgresSessionCases(), redisCases(), redisSmallCases(), memcachedCases(), logCases(), smtpCases(), dataProbes())
}

// Words of docs/limits.md. Others are in cases_web.go.
var (
	thin  = limit{"Under thin traffic, only a floor protects", early}
	pings = limit{"HTTP/2's own traffic", early}

	firstH2 = limit{"A slow first request over HTTP/2", early}
)

func postgresCases() []truthCase {
	sleeps := func(begun time.Duration, query string) func(t *trial) {
		return func(t *trial) {
			db := t.client().database(keep)
			t.at(begun, func() { db.query(query) })
		}
	}
	return append(
		both(
			truthCase{name: "PostgreSQL: a query of 9 s begun at -1 s", server: postgres, quick: true, script: sleeps(-1*s, "SELECT pg_sleep(9)")},
			truthCase{name: "PostgreSQL: a pool, busy until +5", server: postgres, script: postgresPool(5*s, "SELECT 1")},
			truthCase{name: "PostgreSQL: a pool, idle", server: postgres, quick: true, script: postgresPool(-1*s, "SELECT 1")},
		),
		truthCase{name: "PostgreSQL: a query of 25 s begun at -2 s", server: postgres, script: sleeps(-2*s, "SELECT pg_sleep(25)")},
		truthCase{name: "PostgreSQL: rows, 10 kB each 500 ms until +6", server: postgres, script: sleeps(-2*s, "SELECT repeat('x', 10000), pg_sleep(0.5) FROM generate_series(1, 16)")},
		truthCase{name: "PostgreSQL: a pool, idle after slow answers", server: postgres, script: postgresPool(-1*s, "SELECT pg_sleep(0.3)")},
		truthCase{name: "PostgreSQL: a connection for each query, 5 a second until +4", server: postgres, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 4*s, 5, func() { c.database(fresh).query("SELECT 1") })
		}},
		truthCase{name: "PostgreSQL: rows that pause for 9 s", server: postgres, limit: pauses,
			script: sleeps(-1*s, "SELECT repeat('x', 20000), pg_sleep(5) FROM generate_series(1, 2)")},
		truthCase{name: "PostgreSQL: over TLS, a query of 9 s begun at -1 s", server: postgresTLS, script: sleeps(-1*s, "SELECT pg_sleep(9)")},
		truthCase{name: "PostgreSQL: over TLS, a pool, idle", server: postgresTLS, limit: tied, script: postgresPool(-1*s, "SELECT 1")},
	)
}

// postgresPool plans clients with queries until a moment.
func postgresPool(to time.Duration, query string) func(t *trial) {
	return func(t *trial) {
		for i, c := range t.crowd(6) {
			db := c.database(keep)
			t.every(-4*s+time.Duration(i)*100*ms, to, 600*ms, func() { db.query(query) })
		}
	}
}

func postgresSessionCases() []truthCase {
	idle := func(until time.Duration) func(t *trial) {
		return func(t *trial) {
			db := t.client().database(keep)
			t.at(-2*s, func() { db.transaction(until) })
		}
	}
	fill := func(count int, period time.Duration) func(t *trial) {
		return func(t *trial) {
			db := t.client().database(keep)
			t.at(-2*s, func() { db.fill(count, period) })
		}
	}
	return []truthCase{
		{name: "PostgreSQL: idle in a transaction, committed at +2", server: postgres, script: idle(2 * s)},
		{name: "PostgreSQL: idle in a transaction, committed at +8", server: postgres, limit: thin, script: idle(8 * s)},
		{name: "PostgreSQL: COPY, a piece each second until +6", server: postgres, script: fill(8, s)},
		{name: "PostgreSQL: COPY, a piece each 6 s until +16", server: postgres, script: fill(3, 6*s)},
		{name: "PostgreSQL: LISTEN, without notifications", server: postgres, script: func(t *trial) {
			c := t.client()
			t.at(-3*s, func() { c.listen("news") })
		}},
		{name: "PostgreSQL: LISTEN, a notification each second until +5", server: postgres, script: func(t *trial) {
			c, db := t.client(), t.client().database(keep)
			t.at(-3*s, func() { c.listen("news") })
			t.every(-2*s, 5*s, s, func() { db.query("NOTIFY news, 'text'") })
		}},
	}
}

func redisCases() []truthCase {
	blocked := func(warm bool, line string) func(t *trial) {
		return func(t *trial) {
			open := sync.OnceValue(t.client().redis)
			if warm {
				t.every(-3*s, -1100*ms, 200*ms, func() { open().do("PING") })
			}
			t.at(-1*s, func() { open().do(line) })
		}
	}
	return append(
		both(
			truthCase{name: "Redis: BLPOP of 9 s, a fresh connection", server: redisServer, script: blocked(false, "BLPOP queue 9")},
			truthCase{name: "Redis: BLPOP of 9 s, a kept connection", server: redisServer, quick: true, script: blocked(true, "BLPOP queue 9")},
			truthCase{name: "Redis: a pool, idle", server: redisServer, script: redisPool(-1*s, "GET key")},
			truthCase{name: "Redis: a pool, busy until +5", server: redisServer, script: redisPool(5*s, "GET key")},
		),
		truthCase{name: "Redis: BLPOP of 25 s, a kept connection", server: redisServer, script: blocked(true, "BLPOP queue 25")},
		truthCase{name: "Redis: a pool, idle after slow answers", server: redisServer, script: redisPool(-1*s, "BLPOP queue 0.3")},
		truthCase{name: "Redis: pipelines of 100 commands until +4", server: redisServer, limit: tied, script: func(t *trial) {
			open := sync.OnceValue(t.client().redis)
			lines := slices.Repeat([]string{"INCR counter"}, 100)
			t.every(-2*s, 4*s, 500*ms, func() { open().pipeline(lines...) })
		}},
		truthCase{name: "Redis: a connection for each command, 20 a second until +4", server: redisServer, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 4*s, 20, func() {
				r := c.redis()
				r.do("SET key value")
				r.stop()
			})
		}},
		truthCase{name: "Redis: consumers that BLPOP forever", server: redisServer, by: 32 * s, script: func(t *trial) {
			for _, c := range t.crowd(5) {
				t.at(-5*s, func() { c.redis().ping("BLPOP queue 0") })
			}
		}},
		truthCase{name: "Redis: PING and BLPOP of 9 s in one segment", server: redisServer, limit: beside, script: func(t *trial) {
			c := t.client()
			t.at(-1*s, func() { c.redis().pipeline("PING", "BLPOP queue 9") })
		}},
		truthCase{name: "Redis: subscribers, nothing published", server: redisServer, script: redisSubscribers(-1 * s)},
		truthCase{name: "Redis: subscribers, something published each second until +5", server: redisServer, script: redisSubscribers(5 * s)},
	)
}

// redisPool plans clients with a command again and again until a moment.
func redisPool(to time.Duration, line string) func(t *trial) {
	return func(t *trial) {
		for i, c := range t.crowd(10) {
			open := sync.OnceValue(c.redis)
			t.every(-4*s+time.Duration(i)*50*ms, to, 500*ms, func() { open().do(line) })
		}
	}
}

// redisSubscribers plans subscribers, and a publisher until a moment.
func redisSubscribers(to time.Duration) func(t *trial) {
	return func(t *trial) {
		for _, c := range t.crowd(5) {
			t.at(-5*s, func() {
				r := c.redis()
				for err := r.command("SUBSCRIBE news"); err == nil; {
					err = readRESP(r.in)
				}
			})
		}
		open := sync.OnceValue(t.client().redis)
		t.every(-3*s, to, s, func() { open().do("PUBLISH news text") })
	}
}

// redisSmallCases have answers as small as an HTTP/2 PING, although a PING is no answer.
func redisSmallCases() []truthCase {
	// The server delays commands for 800 ms, so a sample shows a waiting command. The next
	// answers are as long as their commands: "PING aa\n" and "$2\r\naa\r\n".
	echo := func(t *trial) {
		for i, c := range t.crowd(10) {
			open := sync.OnceValue(c.redis)
			t.every(-2*s+time.Duration(i)*40*ms, 3*s, 400*ms, func() {
				r := open()
				t.real(func() error {
					if err := r.write("PING aa\n"); err != nil {
						return err
					}
					return readRESP(r.in)
				})
			})
		}
		admin := sync.OnceValue(t.client().redis)
		t.every(-1500*ms, 2*s, 1500*ms, func() { admin().do("DEBUG SLEEP 0.8") })
	}
	small := func(line string) func(t *trial) {
		return func(t *trial) {
			for _, c := range t.crowd(5) {
				open := sync.OnceValue(c.redis)
				t.every(-2*s, 2*s, 300*ms, func() { open().do("BLPOP queue 0.2") })
				t.every(2500*ms, 3500*ms, 100*ms, func() { open().do(line) })
			}
		}
	}
	return append(
		both(truthCase{name: "Redis: answers as long as their commands, after slow ones", server: redisServer, quick: true, script: echo}),
		truthCase{name: "Redis: +PONG after slow answers, until +3.5", server: redisServer, script: small("PING")},
		truthCase{name: "Redis: +OK after slow answers, until +3.5", server: redisServer, script: small("SET key value")},
	)
}

func memcachedCases() []truthCase {
	const set = "set key 0 0 5\r\nvalue\r"
	pool := func(to time.Duration) func(t *trial) {
		return func(t *trial) {
			for i, c := range t.crowd(10) {
				open := sync.OnceValue(c.dial)
				t.every(-3*s+time.Duration(i)*50*ms, to, 500*ms, func() { open().ask(set) })
			}
		}
	}
	return append(
		both(truthCase{name: "memcached: a pool, busy until +5", server: memcached, script: pool(5 * s)}),
		truthCase{name: "memcached: a pool, idle", server: memcached, script: pool(-1 * s)},
		truthCase{name: "memcached: a connection for each command, 10 a second until +4", server: memcached, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 4*s, 10, func() { c.short(set) })
		}},
		truthCase{name: "memcached: a value in pieces each 3 s until +10", server: memcached, limit: tied, script: func(t *trial) {
			c := t.client()
			t.at(-2*s, func() {
				conn := c.dial()
				t.real(func() error {
					conn.send("set key 0 0 4003\r")
					for range 4 {
						conn.send(strings.Repeat("x", 999)) // and a newline
						t.sleep(3 * s)
					}
					return conn.exchange("end\r")
				})
			})
		}},
	)
}

// logCases are streams without answers.
func logCases() []truthCase {
	ship := func(from, to, period time.Duration, line string) func(t *trial) {
		return func(t *trial) {
			for i, c := range t.crowd(3) {
				open := sync.OnceValue(c.dial)
				t.every(from+time.Duration(i)*137*ms, to, period, func() { open().send(line) })
			}
		}
	}
	const syslog, metric = "<13>Jan  2 03:04:05 web app: GET /index.html 200", "requests.served:1|c"
	return append(
		both(truthCase{name: "logs: rsyslog, a line each second, never ends", server: rsyslog, limit: stream, script: ship(-4*s, 60*s, s, syslog)}),
		truthCase{name: "logs: rsyslog, 20 lines a second, never ends", server: rsyslog, limit: stream, script: ship(-4*s, 60*s, 50*ms, syslog)},
		truthCase{name: "logs: rsyslog, a line each 8 s", server: rsyslog, limit: stream, script: ship(-9*s, 60*s, 8*s, syslog)},
		truthCase{name: "logs: rsyslog, a last line at -5 s", server: rsyslog, by: 32 * s, script: ship(-9*s, -4500*ms, s, syslog)},
		truthCase{name: "logs: StatsD over TCP, each second until +6", server: receiver, notBefore: 5 * s, limit: stream, script: ship(-4*s, 6*s, s, metric)},
		truthCase{name: "logs: StatsD over TCP, each 2 s, besides requests until +4", server: rsyslog, limit: stream, script: func(t *trial) {
			ship(-4*s, 60*s, 2*s, metric)(t)
			c := t.client()
			t.steady(-2*s, 4*s, 5, func() {
				conn := c.dial()
				t.real(func() error { return conn.send(syslog) })
				conn.stop()
			})
		}},
	)
}

func smtpCases() []truthCase {
	deliver := func(count int, period, scan time.Duration) func(t *trial) {
		return func(t *trial) {
			c := t.client()
			t.at(-2*s, func() {
				m := c.mail()
				t.real(func() error { return m.deliver(count, period, scan) })
			})
		}
	}
	return append(
		both(truthCase{name: "SMTP: a mail in pieces each second until +6", server: smtp, quick: true, script: deliver(8, s, 0)}),
		truthCase{name: "SMTP: a mail that is scanned until +8", server: smtp, script: deliver(1, 0, 10*s)},
		truthCase{name: "SMTP: mails, 3 a second until +4", server: smtp, script: func(t *trial) {
			c := t.client()
			t.steady(-2*s, 4*s, 3, func() {
				m := c.mail()
				t.real(func() error { return m.deliver(1, 0, 0) })
				m.stop()
			})
		}},
		truthCase{name: "SMTP: clients that have read the greeting", server: smtp, script: func(t *trial) {
			for _, c := range t.crowd(5) {
				t.at(-3*s, func() { c.mail() })
			}
		}},
		truthCase{name: "SMTP: idle sessions after a mail", server: smtp, script: func(t *trial) {
			for _, c := range t.crowd(5) {
				t.at(-4*s, func() { m := c.mail(); t.real(func() error { return m.deliver(1, 0, 100*ms) }) })
			}
		}},
		truthCase{name: "SMTP: a greeting that comes at +8", server: smtpSlow, limit: limit{"A client that waits for the server to speak first", early}, script: func(t *trial) {
			c := t.client()
			t.at(-1*s, func() {
				conn := c.dial()
				t.real(conn.receive)
			})
		}},
	)
}

// dataProbes are health probes of each server.
func dataProbes() []truthCase {
	talks := []struct {
		name   string
		server *server
		probe  func(c *client)
	}{
		{"PostgreSQL", postgres, func(c *client) { c.database(fresh).ping("SELECT 1") }},
		{"Redis", redisServer, func(c *client) { r := c.redis(); r.ping("PING"); r.stop() }},
		{"memcached", memcached, func(c *client) { c.probe("version\r") }},
		{"SMTP", smtp, func(c *client) { m := c.mail(); c.t.spare(m.say("QUIT")); m.stop() }},
		{"rsyslog", rsyslog, nil},
	}
	var cases []truthCase
	for i, at := range talks {
		cases = append(cases, truthCase{name: at.name + ": TCP checks each second", server: at.server, quick: i == 0, script: func(t *trial) {
			c := t.client()
			t.every(-3*s, 50*s, s, c.check)
		}})
		if at.probe == nil {
			continue
		}
		cases = append(cases, truthCase{name: fmt.Sprintf("%s: a probe each 2 s", at.name), server: at.server, slack: patience(2 * s), script: func(t *trial) {
			c := t.client()
			t.every(-5*s, 60*s, 2*s, func() { at.probe(c) })
		}})
	}
	return append(cases, truthCase{name: "Redis: PING each 2 s on a kept connection", server: redisServer, limit: keptProbe, slack: patience(2 * s), script: func(t *trial) {
		open := sync.OnceValue(t.client().redis)
		t.every(-5*s, 60*s, 2*s, func() { open().ping("PING") })
	}})
}
