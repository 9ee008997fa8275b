package plays

import (
	"slices"
	"strings"
)

// simulated are the protocols and the steps that the simulated kernel knows.
var simulated = map[string][]string{
	"protocol": {"", "tcp", "mptcp", "http"},
	"step":     {"wait", "until", "send", "fill", "expect", "answer", "get", "post", "upload", "close", "fin", "syn"},
}

// OnlyReal returns why a row is played with real sockets only, or "" if the row is played in the
// simulated kernel too.
func (c *Row) OnlyReal() string {
	server := strings.Join(c.Server, " ")
	switch {
	case slices.Contains([]string{"noport", "redis", "rsyslog", "haproxy-tunnels"}, c.Server[0]) || server == "lab raw shut":
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
	case p.Label != "" || len(p.First) > 0:
		return "a connection of several plays, or with first steps"
	}
	for _, step := range p.Steps {
		command, _, _ := strings.Cut(step.Arg, " ")
		switch {
		case step.IsVanish():
		case !slices.Contains(simulated["step"], step.Verb):
			return "the step " + step.Verb
		case step.Verb == "send" && slices.Contains([]string{"self", "work"}, command) || strings.Contains(step.Arg, " shut"):
			return "the server's command " + command
		}
	}
	return ""
}

// IsVanish reports whether the client's address vanishes.
func (s Step) IsVanish() bool { return s.Verb == "run" && strings.HasPrefix(s.Arg, "ip route add") }
