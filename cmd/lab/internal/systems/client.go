package systems

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// client talks to the guest's server, over a new connection for each request. A
// stop without a hold loses such requests.
type client struct {
	address string
	http    http.Client
}

func newClient(address string) *client {
	return &client{address, http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}}
}

func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", answer.StatusCode)
	}
	return io.ReadAll(answer.Body)
}

// status is the guest's; see guest/serve.go.
type status struct {
	HUPs    int `json:"hups"`
	Orphans int `json:"orphans"`
}

// status asks for the status. QEMU accepts a connection before the guest does, and may
// never reach the guest: a slow question is given up.
func (c *client) status(ctx context.Context) (s status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	body, err := c.get(ctx, "/status")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// await asks for the status until ok accepts it, and returns the last status.
func (c *client) await(ctx context.Context, ok func(status) bool) (s status, err error) {
	for {
		s, err = c.status(ctx)
		if err == nil && ok(s) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("%w; last status %+v, %w", ctx.Err(), s, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// load is a number of requests.
type load struct {
	mu         sync.Mutex // every worker counts
	sent, lost int
	firstLoss  error
	stop       context.CancelFunc
	workers    sync.WaitGroup
}

// startLoad sends requests, four at a time, until finish.
func (c *client) startLoad(ctx context.Context) *load {
	l := &load{}
	// The workers end between two requests: a request that finish cuts short would
	// count as lost.
	until, stop := context.WithCancel(ctx)
	l.stop = stop
	for range 4 {
		l.workers.Go(func() {
			for until.Err() == nil {
				_, err := c.get(ctx, "/")
				l.count(err)
				select {
				case <-until.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return l
}

func (l *load) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if err != nil {
		l.lost++
		if l.firstLoss == nil {
			l.firstLoss = err
		}
	}
}

// finish ends the load and waits for the requests in flight.
func (l *load) finish() {
	l.stop()
	l.workers.Wait()
}
