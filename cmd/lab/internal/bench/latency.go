package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause lets all fall asleep again between two signals, as inits mostly are.
const pause = 3 * time.Millisecond

// casts is how often all are started anew: which processors the threads of an
// init have come to sleep on matters, and is luck.
const casts = 20

// latency sends USR1 to each contender, until its command has answered.
func (f figures) latency(field []contender, answer string, signals int) {
	for range casts {
		f.latencyOf(field, answer, signals/casts)
	}
}

func (f figures) latencyOf(field []contender, answer string, signals int) {
	var boxes []*box
	for _, c := range field {
		if c.relays {
			b := open(c, answer)
			defer b.close()
			boxes = append(boxes, b)
		}
	}
	turns(signals, boxes, func(b *box, counts bool) {
		time.Sleep(pause)
		before := time.Now()
		check(unix.Kill(b.pid, unix.SIGUSR1))
		b.hear()
		if took := time.Since(before); counts {
			f.add(latency, b.contender, micro(took))
		}
	})
}
