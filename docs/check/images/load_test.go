package images

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load is requests to a server, one every 25 ms until quit, whatever the earlier ones do.
// Every other request has a connection of its own, and one in 17 is answered after four
// seconds, longer than the silence that a hold waits for. Nothing is retried.
type load struct {
	url         string
	fresh, kept http.Client
	quit        chan struct{}
	calls       sync.WaitGroup
	sent, slow  atomic.Int64 // slow: slow requests in flight
	failures    chan error
}

func press(url string) *load {
	l := &load{url: url, quit: make(chan struct{}), failures: make(chan error, 100_000)}
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
	client, path := &l.fresh, ""
	if n%2 == 1 {
		client = &l.kept
	}
	if n%17 == 0 {
		path = "slow"
		l.slow.Add(1)
		defer l.slow.Add(-1)
	}
	l.sent.Add(1)
	if err := ask(client, l.url+path); err != nil {
		l.failures <- err
	}
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
