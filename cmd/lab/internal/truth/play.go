package truth

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// play is what some clients do.
type play struct {
	*plays.Play
	free chan *client // connections of a pool that are not in use: that was used last comes last
}

// run plays all clients. When the server has gone, steps whose moment has not come run at
// once: their requests are lost.
func (p *play) run(t *trial) {
	if p.Pool {
		p.runPool(t)
		return
	}
	var all sync.WaitGroup
	for i := range p.Clients {
		c := t.client(p)
		all.Go(func() { p.runClient(c, i, &all) })
	}
	all.Wait()
}

func (p *play) runClient(c *client, i int, all *sync.WaitGroup) {
	open := c.open
	if !p.Renewed {
		open = sync.OnceValues(c.open)
		if p.Label != "" {
			first, _ := c.t.links.LoadOrStore(p.Label, open) // the first play decides
			open = first.(func() (peers.Link, error))
		}
	}
	for moment := range p.Moments(i) {
		here := c.t.wait(moment)
		if here && p.Renewed {
			all.Go(func() { c.play(open) })
		} else if !c.play(open) || !here {
			return
		}
	}
}

// play takes the steps once on a connection, and notes how they went.
func (c *client) play(open func() (peers.Link, error)) bool {
	link, err := open()
	if err == nil {
		err = c.take(link, c.p.Steps, request{think: c.p.randomThink()})
	}
	switch {
	case err == nil:
	case !c.p.Aside:
		c.t.lose(loss{Error: err.Error()})
	case c.t.sleep(3 * s): // such a request may be cut when the server goes, but must not fail before
		c.t.check(fmt.Errorf("a request failed while the server ran: %w", err))
	}
	return err == nil
}

// randomThink returns how long the server works on a request where a step says THINK.
func (p *play) randomThink() time.Duration {
	switch {
	case p.Work == 0 && rand.IntN(8) == 0:
		return 300 * ms
	case p.Work == 0:
		return 20 * ms
	}
	think := time.Duration((0.5 + rand.Float64()) * float64(p.Work))
	if p.Slow && rand.IntN(10) == 0 {
		think *= 10
	}
	return think
}
