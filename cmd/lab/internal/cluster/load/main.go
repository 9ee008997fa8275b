// Load makes requests to one address, at a fixed rate whatever becomes of the earlier
// ones, and prints each second, as a line of JSON, how they have ended so far.
//
//	load [-rate=N] [-keep] HOST:PORT
//
// It runs in a pod and ends with it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lameduck-init/lameduck/testdata/k8s/tally"
)

func main() {
	rate := flag.Int("rate", 100, "requests a second")
	keep := flag.Bool("keep", false, "keep connections and use them again")
	flag.Parse()
	if flag.NArg() != 1 || *rate < 1 {
		fmt.Fprintln(os.Stderr, "usage: load [-rate=N] [-keep] HOST:PORT")
		os.Exit(2)
	}
	c, n := &client{addr: flag.Arg(0), keep: *keep}, newCount()
	for c.request() != tally.Answered { // the Service may not be known on this node yet
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

// send makes a request each period, at its planned time.
func send(c *client, period time.Duration, n *count) {
	for at := time.Now(); ; at = at.Add(period) {
		time.Sleep(time.Until(at))
		number := n.begin(time.Since(at))
		go func() {
			kind := c.request()
			n.end(number, kind, time.Since(at))
		}()
	}
}
