package soak

import (
	"context"
	"expvar"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/lameduck-init/lameduck/cmd/lab/load"
)

// load is three clients with requests all the time, the first on a connection that
// stays open.
type load struct {
	over    context.CancelFunc
	clients sync.WaitGroup
	failed  atomic.Int64
}

func newLoad(port int, total *expvar.Map) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{over: cancel}
	for i := range 3 {
		l.clients.Go(func() {
			c := &client.Client{Addr: fmt.Sprintf("127.0.0.1:%d", port), Keep: i == 0}
			defer c.Close()
			for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
				total.Add("requests", 1)
				if c.HTTP("/", "", time.Now().Add(patience)) != client.Answered {
					l.failed.Add(1)
				}
			}
		})
	}
	return l
}

// end stops the clients, and returns when all have ended.
func (l *load) end() {
	l.over()
	l.clients.Wait()
}
