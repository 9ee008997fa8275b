package soak

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/lameduck-init/lameduck/cmd/lab/load"
)

// load is three clients with requests all the time, the first on a connection that
// stays open.
type load struct {
	over    chan struct{}
	once    sync.Once
	clients sync.WaitGroup
	failed  atomic.Int64
}

func newLoad(port int, total *tally) *load {
	l := &load{over: make(chan struct{})}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for i := range 3 {
		l.clients.Go(func() { l.client(&client.Client{Addr: address, Keep: i == 0}, total) })
	}
	return l
}

func (l *load) client(c *client.Client, total *tally) {
	defer c.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-tick.C:
		}
		if err := c.Do(time.Now().Add(patience), ping); err != nil {
			l.failed.Add(1)
			continue
		}
		total.add("requests", 1)
	}
}

// ping sends a line and reads the answer.
func ping(conn *client.Conn) (again bool, err error) {
	fmt.Fprintln(conn, "ping")
	_, err = conn.In.ReadString('\n')
	return true, err
}

// end stops the clients, and returns when all have ended.
func (l *load) end() {
	l.once.Do(func() { close(l.over) })
	l.clients.Wait()
}
