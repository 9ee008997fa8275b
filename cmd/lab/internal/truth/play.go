package truth

import (
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// play is what some clients do: steps at a moment, or again and again.
type play struct {
	clients  int
	protocol string
	label    string       // plays with the same label use one connection
	first    []peers.Step // on a new connection
	steps    []peers.Step

	from, to  time.Duration
	period    time.Duration
	jitter    time.Duration // so much sooner or later than the period says
	perSecond float64       // at random
	renewed   bool          // a new connection for each time
	aside     bool          // does not count

	front bool          // to the ingress, in front of the server
	port  int           // of the server
	peer  int           // clients with the same number share an address; 0: addresses of their own
	ping  time.Duration // of HTTP/2 and gRPC, after so much silence

	pool  bool          // see pool.go
	burst int           // requests at a time
	think time.Duration // the average time from an answer to the next request
	share int           // so many requests at a time on a connection
}

// forever is longer than any trial.
const forever = 24 * time.Hour

// parsePlays reads the plays of a row. The name of a session stands for its plays, with the
// rest in place of $1.
func parsePlays(text string, sessions peers.Sessions) []play {
	var plays []play
	for part := range strings.SplitSeq(text, " & ") {
		name, rest, _ := strings.Cut(part, " ")
		if session, known := sessions[name]; known {
			plays = append(plays, parsePlays(strings.ReplaceAll(session, "$1", rest), sessions)...)
		} else {
			plays = append(plays, parsePlay(part, sessions))
		}
	}
	return plays
}

// parsePlay reads a play: words, a colon, and steps. doc.go has the words.
func parsePlay(text string, sessions peers.Sessions) play {
	head, body, found := strings.Cut(text, ":")
	if !found {
		panic("no colon in " + text)
	}
	p := play{clients: 1, port: peers.Port, burst: 1, share: 1}
	for word := range strings.FieldsSeq(head) {
		p.word(word, sessions)
	}
	p.steps = sessions.Steps(body)
	return p
}

func (p *play) word(word string, sessions peers.Sessions) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "new":
		p.renewed = true
	case "aside":
		p.aside = true
	case "pool":
		p.pool = true
	case "front":
		p.front = true
	case "first":
		p.first = sessions.Steps(value)
	case "on":
		p.label = value
	case "port":
		p.port = peers.Number(value)
	case "peer":
		p.peer = peers.Number(value)
	case "ping":
		p.ping = peers.Duration(value)
	case "jitter":
		p.jitter = peers.Duration(value)
	case "burst":
		p.burst = peers.Number(value)
	case "think":
		p.think = peers.Duration(value)
	case "share":
		p.share = peers.Number(value)
	default:
		count, isCount := strings.CutSuffix(word, "x")
		switch {
		case isCount:
			p.clients = peers.Number(count)
		case strings.ContainsAny(word[:1], "+-0123456789"):
			p.when(word)
		default:
			p.protocol = word
		}
	}
}

// when reads MOMENT, FROM..TO/PERIOD or FROM..TO~RATE. Without TO the play never ends.
func (p *play) when(word string) {
	from, rest, again := strings.Cut(word, "..")
	p.from = peers.Duration(from)
	p.to = p.from + 1
	p.period = forever
	if !again {
		return
	}
	to, period, regular := strings.Cut(rest, "/")
	if regular {
		p.period = peers.Duration(period)
	} else if random, rate, found := strings.Cut(rest, "~"); found {
		to = random
		p.perSecond = float64(peers.Number(rate))
	}
	p.to = forever
	if to != "" {
		p.to = peers.Duration(to)
	}
}

// moments yields when client i begins the steps.
func (p *play) moments(i int) iter.Seq[time.Duration] {
	random := rand.New(rand.NewPCG(uint64(i), uint64(p.perSecond)))
	if p.pool {
		random = rand.New(rand.NewPCG(uint64(i), rand.Uint64()))
	}
	moment := p.from
	if !p.pool && p.to > p.from+p.period {
		moment += p.period * time.Duration(i) / time.Duration(p.clients)
	}
	return func(yield func(time.Duration) bool) {
		for moment < p.to {
			early := time.Duration((2*random.Float64() - 1) * float64(p.jitter))
			if !yield(moment + early) {
				return
			}
			if p.perSecond > 0 {
				moment += exponential(random, time.Duration(float64(s)/p.perSecond))
			} else {
				moment += p.period
			}
		}
	}
}

// exponential returns a random time with an average.
func exponential(random *rand.Rand, average time.Duration) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(average))
}

// run plays all clients. When the server has gone, steps whose moment has not come run at
// once: their requests are lost.
func (p *play) run(t *trial) {
	if p.pool {
		p.runPool(t)
		return
	}
	var all sync.WaitGroup
	for i := range p.clients {
		c := t.client(p)
		all.Go(func() { p.runClient(c, i, &all) })
	}
	all.Wait()
}

func (p *play) runClient(c *client, i int, all *sync.WaitGroup) {
	if !p.renewed {
		open := c.t.labelled(p.label, sync.OnceValues(c.open))
		for moment := range p.moments(i) {
			here := c.t.wait(moment)
			if !c.play(open) || !here {
				return
			}
		}
		return
	}
	for moment := range p.moments(i) {
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
	for _, step := range c.p.steps {
		if err != nil {
			break
		}
		err = c.take(l, step)
		if err == nil && !c.p.aside && counts(step) {
			c.t.answered()
		}
	}
	switch {
	case err == nil:
	case c.p.aside:
		c.t.spare(err)
	default:
		c.t.lose(err)
	}
	return err == nil
}

// counts reports that the end of a step is a moment that the hold should wait for.
func counts(s peers.Step) bool { return s.Verb != "wait" && s.Verb != "until" && s.Verb != "close" }

// randomThink returns how long the server works on a request where a step does not say.
func randomThink() string {
	if rand.IntN(8) == 0 {
		return "300ms"
	}
	return "20ms"
}

// take takes a step.
func (c *client) take(l peers.Link, step peers.Step) error {
	step.Arg = strings.NewReplacer("THINK", randomThink(), "ADDRESS", c.addr.String()).Replace(step.Arg)
	switch step.Verb {
	case "wait":
		c.t.sleep(peers.Duration(step.Arg))
	case "until":
		c.t.wait(peers.Duration(step.Arg))
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
