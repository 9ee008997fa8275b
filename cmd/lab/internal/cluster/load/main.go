// Load makes requests to one address, at a fixed rate whatever becomes of the earlier
// requests, and prints a load.Tally each second, as a line of JSON.
//
//	load [-rate=N] [-conns=N] HOST:PORT
//
// Load runs in a pod and ends with the pod. The requests are POSTs, which no proxy
// repeats, and which take a server of ours 20 ms.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// timeout bounds one request.
const timeout = 5 * time.Second

var ports atomic.Int32

// dial connects to the address, and takes the local ports in turn. The kernel would take the same port
// again within seconds, and connection tracking might send the new connection where the
// last use of the port went: to a pod that has gone.
func dial(ctx context.Context, network, _ string) (net.Conn, error) {
	const first, end = 2048, 65536
	for {
		d := net.Dialer{LocalAddr: &net.TCPAddr{Port: first + int(ports.Add(1))%(end-first)}}
		conn, err := d.DialContext(ctx, network, flag.Arg(0))
		if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil {
			return conn, err
		}
	}
}

func main() {
	rate := flag.Int("rate", 100, "requests a second")
	conns := flag.Int("conns", 0, "keep so many connections and use them in turn; 0: a new connection for each request")
	flag.Parse()
	c := load.NewClient(*conns, dial)
	ask := func(time.Time) load.Kind { return c.HTTP("/20ms", "duck", time.Now().Add(timeout)) }
	for ask(time.Now()) != load.Answered { // the node may not know the Service yet
		time.Sleep(100 * time.Millisecond)
	}
	s := &load.Sender{Began: time.Now()}
	go s.Send(context.Background(), func() (time.Duration, func(time.Time) load.Kind) {
		return time.Second / time.Duration(*rate), ask
	})
	lines := json.NewEncoder(os.Stdout)
	for range time.Tick(time.Second) {
		if lines.Encode(s.Count()) != nil {
			os.Exit(1)
		}
	}
}
