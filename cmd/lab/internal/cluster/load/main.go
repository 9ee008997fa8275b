// Load makes requests to one address, at a fixed rate whatever becomes of the earlier
// requests, and prints a load.Tally each second, as a line of JSON.
//
//	load [-rate=N] [-conns=N] HOST:PORT
//
// Load runs in a pod and ends with the pod. The requests are POSTs, which no proxy
// repeats.
package main

import (
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
	c, n := &load.Client{Addr: flag.Arg(0), Keep: *conns > 0, Conns: *conns, Ports: true}, newCount()
	for request(c) != load.Answered { // the node may not know the Service yet
		time.Sleep(100 * time.Millisecond)
	}
	go send(c, time.Second/time.Duration(*rate), n)
	lines := json.NewEncoder(os.Stdout)
	for range time.Tick(time.Second) {
		if lines.Encode(n.tally()) != nil {
			os.Exit(1)
		}
	}
}

func request(c *load.Client) load.Kind { return c.HTTP("/", "duck", time.Now().Add(timeout)) }

// send makes a request each period, at the planned time.
func send(c *load.Client, period time.Duration, n *count) {
	for at := time.Now(); ; at = at.Add(period) {
		time.Sleep(time.Until(at))
		number := n.begin(time.Since(at))
		go func() {
			kind := request(c)
			n.end(number, kind, time.Since(at))
		}()
	}
}
