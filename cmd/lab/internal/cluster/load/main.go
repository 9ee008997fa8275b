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
	"flag"
	"os"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// timeout bounds one request.
const timeout = 5 * time.Second

func main() {
	rate := flag.Int("rate", 100, "requests a second")
	conns := flag.Int("conns", 0, "keep so many connections and use them in turn; 0: a new connection for each request")
	flag.Parse()
	c := &load.Client{Addr: flag.Arg(0), Keep: *conns > 0, Conns: *conns, Ports: true}
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
