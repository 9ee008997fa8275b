package images

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// load is requests to a server, one every 25 ms until quit, whatever the earlier ones do.
// Every other request has a connection of its own, and one in 16 is answered after four
// seconds, longer than the silence that a hold waits for. Nothing is retried.
type load struct {
	url         string
	fresh, kept http.Client
	quit        chan struct{}
	calls       sync.WaitGroup
	mu          sync.Mutex // every request has a goroutine
	count       tally
}

// tally counts requests; slow are the slow ones in flight.
type tally struct {
	sent, ended, slow int
	failures          []error
}

func press(url string) *load {
	l := &load{url: url, quit: make(chan struct{})}
	l.fresh.Transport = &http.Transport{DisableKeepAlives: true}
	l.kept.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	l.calls.Go(func() {
		for tick, n := time.Tick(25*time.Millisecond), 0; ; n++ {
			select {
			case <-tick:
				l.calls.Go(func() { l.call(n) })
			case <-l.quit:
				return
			}
		}
	})
	return l
}

func (l *load) call(n int) {
	client, path, slow := &l.fresh, "", 0
	if n%2 == 1 {
		client = &l.kept
	}
	if n%32 == 0 || n%32 == 15 {
		path, slow = "slow", 1
	}
	l.add(tally{sent: 1, slow: slow})
	done := tally{ended: 1, slow: -slow}
	if err := ask(client, l.url+path); err != nil {
		done.failures = []error{err}
	}
	l.add(done)
}

// add adds to the tally, and returns the sum.
func (l *load) add(more tally) tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.sent += more.sent
	l.count.ended += more.ended
	l.count.slow += more.slow
	l.count.failures = append(l.count.failures, more.failures...)
	return l.count
}

// ask makes a request that net/http does not repeat, since it cannot repeat the body.
func ask(client *http.Client, url string) error {
	answer, err := client.Post(url, "text/plain", io.MultiReader(strings.NewReader("duck")))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && string(text) != "ok\n" {
		err = fmt.Errorf("answer %s: %q", answer.Status, text)
	}
	return err
}
