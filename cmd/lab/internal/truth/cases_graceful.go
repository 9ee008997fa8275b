package truth

// ending is a web server with a graceful stop: the signal lets requests in flight finish.
type ending struct {
	stack
	flags []string
}

var endings = []ending{
	{stack{"Go", goEnding, goEndingTLS, goEndingTLS, goEnding}, nil},
	{nginxStack, []string{"--preset=nginx"}},
	{haproxyStack, []string{"--preset=haproxy"}},
	{apacheStack, []string{"--preset=auto"}},
	{caddyStack, []string{"--preset=auto"}},
	{nodeStack, []string{"--preset=node"}},
}

// gracefulCases are requests that look like idle connections to the kernel's counters. The hold
// may end early, but the server loses no request.
func gracefulCases() []truthCase {
	var cases []truthCase
	for _, e := range endings {
		cases = append(cases, e.shapes()...)
	}
	return cases
}

func (e ending) shapes() []truthCase {
	row := func(what string, server *server, script func(t *trial)) truthCase {
		return truthCase{name: "graceful: " + what + ", " + e.name, server: server, flags: until("quiet", e.flags...), graceful: true, by: 50 * s, script: script}
	}
	cases := []truthCase{
		row("9 s on a fresh connection over h2", e.h2, request(-1*s, http2, "/?think=9s")),
		row("9 s beside fast requests over h2", e.h2, slowBesideFast(1*s)),
		row("an upload in pieces each 6 s over h2", e.h2, slowUpload(6*s, 2)),
		e.cut("TLS", e.h2),
		e.cut("no TLS", e.plain),
	}
	switch e.name {
	case "Apache", "Caddy", "Node": // limitCases has the others
		cases = append(cases,
			row("9 s on a fresh connection over TLS 1.3", e.overTLS, request(-1*s, http1, "/?think=9s")),
			row("an answer that pauses for 9 s", e.plain, request(-1*s, http1, "/?size=2000&pause=9s")))
	default:
		cases = append(cases, far(cases[0]))
	}
	return cases
}

// cut is a stop 5 s after TERM, or up to 0.5 s later for a lull, amid requests of all shapes.
func (e ending) cut(name string, server *server) truthCase {
	quick := server.tls && (e.name == "Go" || e.name == "nginx" || e.name == "HAProxy")
	flags := append([]string{"--delay=5", "--grace-period=60"}, e.flags...)
	return truthCase{name: "graceful: a fixed delay of 5 s amid slow requests, " + name + ", " + e.name, server: server, flags: flags, graceful: true, by: 5800 * ms, quick: quick,
		script: func(t *trial) {
			wires := []wire{http1}
			if server.tls {
				wires = append(wires, http2)
			}
			for _, w := range wires {
				amid(t, w)
			}
		}}
}

// amid plans requests in flight 5 s after TERM.
func amid(t *trial, w wire) {
	request(-1*s, w, "/?think=9s")(t)
	secondRequest(-1*s, w, "/?think=9s")(t)
	request(-1*s, w, "/?size=2000&pause=9s")(t)
	request(-1*s, w, "/?each=500ms&count=20&size=1000")(t)
	site := t.client().over(w)
	t.at(-1*s, func() { site.post("/", &slowBody{t, 2 * s, 5000, 5}) })
	pooled(3, w, -1*s, "/")(t)
}
