package script

import (
	"strconv"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// ParseEvent reads an event:
//
//	NAME              a signal to lameduck, from outside of the container
//	exit N            the command exits
//	killed NAME       the command is killed by a signal
//	stopped NAME      the command is stopped by a signal
//	continued         the command is continued
//	orphan            another process ends
//	sample STATE...   a sample of the traffic, with the number of requests at risk, and with
//	                  "stale" and "waiting" (for others)
//	refused [NAME]    the kernel refuses a signal
//
// and tick, childless, hold, on-stop, sent-below and none-at-work.
func ParseEvent(text string) (e stop.Event) {
	word, rest, _ := strings.Cut(text, " ")
	e.Kind = stop.SignalArrived
	for kind := stop.Tick; kind <= stop.NoneAtWork; kind++ {
		if name, _, _ := strings.Cut(stop.Event{Kind: kind}.String(), " "); name == word {
			e.Kind = kind
		}
	}
	switch {
	case word == "killed":
		e.Kind = stop.CommandExited
		e.Signal = testutil.Must(sig.Parse(rest))
	case e.Kind == stop.SignalArrived:
		e.Signal = testutil.Must(sig.Parse(word))
	case word == "exit":
		e.Code = testutil.Must(strconv.Atoi(rest))
	case e.Kind == stop.CommandStopped, e.Kind == stop.Refused && rest != "":
		e.Signal = testutil.Must(sig.Parse(rest))
	case e.Kind == stop.Sampled:
		setSample(&e, strings.Fields(rest))
	}
	return e
}

func setSample(e *stop.Event, words []string) {
	for e.Traffic.String() != words[0] {
		e.Traffic++
		if e.Traffic > stop.OnlyKept {
			panic(words[0])
		}
	}
	for _, word := range words[1:] {
		switch word {
		case "stale":
			e.Stale = true
		case "waiting":
			e.Waiting = true
		default:
			e.Active = true
			e.AtRisk = testutil.Must(strconv.Atoi(word))
		}
	}
}
