package truth

func httpCases() []truthCase {
	return both(
		truthCase{name: "row 6a: 11 s request begun 8 s before", server: goHTTP, quick: true, script: func(t *trial) {
			site := t.client().site(fresh)
			t.at(-8*s, func() { site.get("/?think=11s") })
		}},
		truthCase{name: "nginx, requests until +3", server: nginx, quick: true, script: func(t *trial) {
			site := t.client().site(keep)
			t.every(-2*s, 3*s, 200*ms, func() { site.get("/") })
		}},
		truthCase{name: "haproxy TLS, requests until +3", server: haproxyTLS, quick: true, script: func(t *trial) {
			site := t.client().site(keep)
			t.every(-2*s, 3*s, 200*ms, func() { site.get("/") })
		}},
	)
}
