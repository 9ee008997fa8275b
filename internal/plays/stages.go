package plays

import (
	"fmt"
	"slices"
	"strings"
)

// simulated are the protocols, the steps and the commands of the server "lab raw" that the
// simulated kernel knows.
var simulated = map[string][]string{
	"protocol": {"", "tcp", "http"},
	"step":     {"wait", "until", "send", "fill", "expect", "answer", "get", "post", "upload", "close", "fin", "syn"},
	"command":  {"answer", "push", "upload", "listen", "never"},
}

// OnlyReal returns why a row is played with real sockets only, or "" if the row is played in the
// simulated kernel too.
func (c *Row) OnlyReal() string {
	server := strings.Join(c.Server, " ")
	switch {
	case !slices.Contains([]string{"lab http", "lab raw", "lab raw receiver"}, server) && !strings.HasPrefix(server, "lab raw greet"):
		return "the server, " + server
	case c.Graceful || c.Race:
		return "what the server does at its signal"
	case slices.Contains(c.Flags, "--close-idle"):
		return "--close-idle"
	case slices.Contains(c.Flags, "--until=elapsed"):
		return "a fixed delay"
	}
	for i := range c.Plays {
		if why := c.Plays[i].onlyReal(); why != "" {
			return why
		}
	}
	return ""
}

func (p *Play) onlyReal() string {
	switch {
	case p.Pool:
		return "a pool, whose requests depend on the answers"
	case !slices.Contains(simulated["protocol"], p.Protocol):
		return "the protocol " + p.Protocol
	}
	for _, step := range slices.Concat(p.First, p.Steps) {
		command, _, _ := strings.Cut(step.Arg, " ")
		switch {
		case step.IsVanish():
		case !slices.Contains(simulated["step"], step.Verb):
			return "the step " + step.Verb
		case step.Verb == "send" && slices.Contains([]string{"self", "work"}, command) || strings.Contains(step.Arg, " shut"):
			return "the server's command " + fmt.Sprint(command)
		}
	}
	return ""
}

// IsVanish reports whether the client's address vanishes.
func (s Step) IsVanish() bool { return s.Verb == "run" && strings.HasPrefix(s.Arg, "ip route add") }
