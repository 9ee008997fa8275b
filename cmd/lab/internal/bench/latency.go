package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause lets all processes fall asleep again between two signals, as inits mostly are.
const pause = 3 * time.Millisecond

// casts is how often all inits are started anew: the processors on which the threads of
// an init sleep matter, and are luck.
const casts = 20

// latency measures the time from USR1 to each contender to the answer of the command.
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
