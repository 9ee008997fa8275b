package script

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// kinds are the events without a signal's name.
var kinds = map[string]stop.Kind{
	"tick": stop.Tick, "started": stop.CommandStarted, "stopped": stop.CommandStopped, "continued": stop.CommandContinued,
	"exit": stop.CommandExited, "killed": stop.CommandExited, "orphan": stop.OrphanReaped, "childless": stop.NoChildren,
	"hold": stop.PreStop, "on-stop": stop.OnStopEnded, "refused": stop.Refused, "sample": stop.Sampled,
	"sent-below": stop.SentBelow, "none-at-work": stop.NoneAtWork,
}

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
// and tick, started, childless, hold, on-stop, sent-below and none-at-work.
func ParseEvent(text string) (e stop.Event, err error) {
	word, rest, _ := strings.Cut(text, " ")
	kind, known := kinds[word]
	e.Kind = kind
	switch {
	case !known:
		e.Kind = stop.SignalArrived
		e.Signal, err = sig.Parse(word)
	case word == "exit":
		e.Code, err = strconv.Atoi(rest)
	case kind == stop.CommandExited, kind == stop.CommandStopped, kind == stop.Refused && rest != "":
		e.Signal, err = sig.Parse(rest)
	case kind == stop.Sampled:
		err = parseSample(&e, strings.Fields(rest))
	}
	return e, err
}

func parseSample(e *stop.Event, words []string) (err error) {
	for e.Traffic.String() != words[0] {
		e.Traffic++
		if e.Traffic > stop.OnlyKept {
			return fmt.Errorf("no sample is called %q", words[0])
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
			e.AtRisk, err = strconv.Atoi(word)
		}
	}
	return err
}
