package truth

import "slices"

func rawCases() []truthCase {
	return slices.Concat(
		both(
			truthCase{name: "row 1: one SYN 5 s before", server: raw, quick: true, script: func(t *trial) {
				t.at(-5*s, func() { syn(1) })
			}},
			truthCase{name: "row 3: half-close after the request", server: raw, quick: true, script: func(t *trial) {
				c := t.client()
				t.at(-1*s, func() {
					conn := c.dial()
					t.real(func() error {
						if err := conn.send("answer 9s 100"); err != nil {
							return err
						}
						conn.halfClose()
						return conn.receive()
					})
				})
			}},
			truthCase{name: "no client", server: raw, quick: true, script: func(t *trial) {}},
		),
	)
}
