package plays

import (
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// Play is what some clients do: steps at a moment, or again and again.
type Play struct {
	Clients  int
	Protocol string
	Label    string `name:"on"` // plays with the same label use one connection
	First    []Step // on a new connection
	Steps    []Step

	From, To  time.Duration
	Period    time.Duration
	Jitter    time.Duration // so much sooner or later than the period says
	PerSecond float64       // at random
	Renewed   bool          `name:"new"` // a new connection for each time
	Aside     bool          // does not count

	Front bool          // to the ingress, in front of the server
	Port  int           // of the server
	Peer  int           // clients with the same number share an address; 0: addresses of their own
	Ping  time.Duration // of HTTP/2 and gRPC, after so much silence

	Pool  bool          // see runPool of lab truth
	Burst int           // requests at a time
	Think time.Duration // the average time from an answer to the next request
	Share int           // so many requests at a time on a connection
	Work  time.Duration // THINK is half of this to one and a half; 0: see randomThink of lab truth
	Slow  bool          // THINK is ten times as long one time in ten
}

// Forever is longer than any trial.
const Forever = 24 * time.Hour

// Parse reads the plays of a row. The name of a session stands for its plays, with the
// rest in place of $1.
func Parse(text string, sessions Sessions) []Play {
	var plays []Play
	for part := range strings.SplitSeq(text, " & ") {
		name, rest, _ := strings.Cut(part, " ")
		if session, known := sessions[name]; known {
			plays = append(plays, Parse(strings.ReplaceAll(session, "$1", rest), sessions)...)
		} else {
			plays = append(plays, parsePlay(part, sessions))
		}
	}
	return plays
}

// parsePlay reads a play: words, a colon, and steps. doc.go has the words.
func parsePlay(text string, sessions Sessions) Play {
	head, body, found := strings.Cut(text, ":")
	if !found {
		panic("no colon in " + text)
	}
	p := Play{Clients: 1, Port: Port, Burst: 1, Share: 1}
	for word := range strings.FieldsSeq(head) {
		p.word(word, sessions)
	}
	p.Steps = sessions.Steps(body)
	return p
}

func (p *Play) word(word string, sessions Sessions) {
	name, value, _ := strings.Cut(word, "=")
	count, isCount := strings.CutSuffix(word, "x")
	switch {
	case name == "first":
		p.First = sessions.Steps(value)
	case isCount:
		p.Clients = Number(count)
	case strings.ContainsAny(word[:1], "+-0123456789"):
		p.when(word)
	default:
		if !tables.Set(p, name, value) {
			p.Protocol = word
		}
	}
}

// when reads MOMENT, FROM..TO/PERIOD or FROM..TO~RATE. Without TO the play never ends.
func (p *Play) when(word string) {
	from, rest, again := strings.Cut(word, "..")
	p.From = Duration(from)
	p.To = p.From + 1
	p.Period = Forever
	if !again {
		return
	}
	to, period, regular := strings.Cut(rest, "/")
	if regular {
		p.Period = Duration(period)
	} else if random, rate, found := strings.Cut(rest, "~"); found {
		to = random
		p.PerSecond = float64(Number(rate))
	}
	p.To = Forever
	if to != "" {
		p.To = Duration(to)
	}
}

// Moments yields when client i begins the steps.
func (p *Play) Moments(i int) iter.Seq[time.Duration] {
	random := rand.New(rand.NewPCG(uint64(i), uint64(p.PerSecond)))
	if p.Pool {
		random = rand.New(rand.NewPCG(uint64(i), rand.Uint64()))
	}
	moment := p.From
	if !p.Pool && p.To > p.From+p.Period {
		moment += p.Period * time.Duration(i) / time.Duration(p.Clients)
	}
	return func(yield func(time.Duration) bool) {
		for moment < p.To {
			early := time.Duration((2*random.Float64() - 1) * float64(p.Jitter))
			if !yield(moment + early) {
				return
			}
			if p.PerSecond > 0 {
				moment += Exponential(random, time.Duration(float64(time.Second)/p.PerSecond))
			} else {
				moment += p.Period
			}
		}
	}
}

// Exponential returns a random time with an average.
func Exponential(random *rand.Rand, average time.Duration) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(average))
}
