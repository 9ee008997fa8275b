package truth

// keptServer is a server before a pool of kept connections.
type keptServer struct {
	name   string
	preset string
	*server
	exchange keptExchange // nil for HTTP/2
	closes   bool         // every connection, between two requests
	quick    bool
}

// keptServers are the servers of the presets, as docs/presets.md says.
var keptServers = []keptServer{
	{"nginx", "nginx", nginx, postKept, true, true},
	{"nginx, h2", "nginx", nginxH2, nil, true, false},
	{"HAProxy", "haproxy", haproxy, postKept, true, true},
	{"HAProxy with idle-close-on-response", "haproxy", haproxySparing, postKept, true, false},
	{"HAProxy, h2", "haproxy", haproxyH2, nil, true, false},
	{"Apache event", "httpd", apache, postKept, true, true},
	{"Apache worker", "httpd", apacheWorker, postKept, true, false},
	{"Apache prefork", "httpd", apachePrefork, postKept, true, false},
	{"Apache event, h2", "httpd", apacheTLS, nil, false, false},
	{"Caddy", "caddy", caddy, postKept, true, false},
	{"Caddy, h2", "caddy", caddyTLS, nil, false, false},
	{"Go Shutdown", "go", goEnding, postKept, true, true},
	{"Go Shutdown, h2", "go", goEndingTLS, nil, true, false},
	{"Caddy, h2c", "caddy", caddy, nil, false, false},
	{"Go without a handler", "go", goWeb, postKept, false, false},
	{"Node server.close", "node", node, postKept, false, false},
	{"gunicorn gthread", "gunicorn", gunicornKept, postKept, false, false},
	{"uWSGI", "uwsgi", uwsgiPool, postKept, false, false},
	{"Puma", "puma", puma, postKept, true, false},
	{"Tomcat", "tomcat", tomcat, postKept, false, false},
	{"Redis", "redis", redisServer, blpopKept, false, false},
	{"memcached", "memcached", memcached, getKept, false, false},
	{"PostgreSQL", "postgres", postgres, nil, false, false},
	{"php-fpm", "php-fpm", fpmPool, nil, false, false},
}

// keptCases are clients with kept connections that never let go. The signal goes out at
// once, amid requests. If the server closes kept connections between two requests, only the
// race loses requests.
func keptCases() []truthCase {
	var cases []truthCase
	for _, on := range keptServers {
		row := on.row()
		cases = append(cases, row)
		if on.closes {
			cases = append(cases, far(row))
		}
	}
	return cases
}

func (on keptServer) row() truthCase {
	row := truthCase{
		name:   "graceful: connections that are kept to the signal, " + on.name,
		server: on.server, quick: on.quick, graceful: true, by: s,
		flags:  []string{"--preset=" + on.preset, "--grace-period=60", "--kill-after=10"},
		script: keepUsingH2,
	}
	lead := 2 * s
	if on.preset == "tomcat" {
		lead = 20 * s // the page is compiled at the first request
	}
	switch {
	case on.preset == "php-fpm":
		row.script = func(t *trial) { keepUsing((*client).dial, t.fastcgiKept, lead)(t) }
	case on.preset == "postgres":
		row.script = keepUsing((*client).dialPostgres, queryKept, lead)
	case on.exchange != nil:
		row.script = keepUsing((*client).dial, on.exchange, lead)
	}
	if !on.closes {
		row.limit = limit{"your program must, when it gets its signal", early}
	}
	return row
}
