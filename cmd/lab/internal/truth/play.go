package truth

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// play is what some clients do.
type play struct{ *plays.Play }

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
	if !p.Renewed {
		open := c.t.labelled(p.Label, sync.OnceValues(c.open))
		for moment := range p.Moments(i) {
			here := c.t.wait(moment)
			if !c.play(open) || !here {
				return
			}
		}
		return
	}
	for moment := range p.Moments(i) {
		if !c.t.wait(moment) {
			c.play(c.open)
			return
		}
		all.Go(func() { c.play(c.open) })
	}
}

// labelled returns what opens the connection of a label: the first play decides.
func (t *trial) labelled(label string, open func() (peers.Link, error)) func() (peers.Link, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.links[label]; known != nil {
		return known
	}
	if label != "" {
		t.links[label] = open
	}
	return open
}

// play takes the steps once on a connection, and notes how they went.
func (c *client) play(open func() (peers.Link, error)) bool {
	l, err := open()
	for _, step := range c.p.Steps {
		if err != nil {
			break
		}
		err = c.take(l, step)
		if err == nil && !c.p.Aside && counts(step) {
			c.t.answered()
		}
	}
	switch {
	case err == nil:
	case c.p.Aside:
		c.t.spare(err)
	default:
		c.t.lose(err)
	}
	return err == nil
}

// counts reports that the end of a step is a moment that the hold should wait for.
func counts(s plays.Step) bool { return s.Verb != "wait" && s.Verb != "until" && s.Verb != "close" }

// randomThink returns how long the server works on a request where a step does not say.
func randomThink() string {
	if rand.IntN(8) == 0 {
		return "300ms"
	}
	return "20ms"
}

// take takes a step.
func (c *client) take(l peers.Link, step plays.Step) error {
	step.Arg = strings.NewReplacer("THINK", randomThink(), "ADDRESS", c.addr.String()).Replace(step.Arg)
	switch step.Verb {
	case "wait":
		c.t.sleep(plays.Duration(step.Arg))
	case "until":
		c.t.wait(plays.Duration(step.Arg))
	case "run":
		return stage.Shell(step.Arg)
	case "ingress":
		return c.t.ingress(step.Arg)
	case "signal":
		return c.t.signal(step.Arg)
	case "syn":
		c.syn()
	default:
		return l.Take(step)
	}
	return nil
}
