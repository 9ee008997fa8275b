package images

import (
	"context"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// press sends requests to a server, one every 25 ms until quit is called, whatever the earlier ones
// do. Every other request has a connection of its own, and one in 17 is answered after four
// seconds, longer than the silence that a hold waits for. Nothing is retried.
func press(addr string) (sender *load.Sender, quit func()) {
	sender = &load.Sender{Began: time.Now()}
	fresh, kept := &load.Client{Addr: addr}, &load.Client{Addr: addr, Keep: true}
	ctx, cancel := context.WithCancel(context.Background())
	ended, n := make(chan struct{}), 0
	go func() {
		defer close(ended)
		sender.Send(ctx, func() (pause time.Duration, ask func(planned time.Time) load.Kind) {
			client, path := fresh, "/"
			n++
			if n%2 == 0 {
				client = kept
			}
			if n%17 == 0 {
				path = "/slow"
			}
			return 25 * time.Millisecond, func(planned time.Time) load.Kind {
				return client.HTTP(path, "duck", planned.Add(patience))
			}
		})
	}()
	return sender, func() {
		cancel()
		<-ended
		kept.Close()
	}
}
