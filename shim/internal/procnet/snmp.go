package procnet

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Counters are counters of TCP since the network namespace was made, by their names in RFC
// 4022.
type Counters struct {
	ActiveOpens  uint64 // connections made from here
	PassiveOpens uint64 // connections accepted
	InSegs       uint64 // segments received, by any connection
}

// ParseCounters finds the counters in net/snmp, where a line of names goes before each
// line of numbers.
func ParseCounters(r io.Reader) (Counters, error) {
	l := newLines(r)
	var names []string
	for {
		line, err := l.next()
		if err == io.EOF {
			return Counters{}, errors.New("the counters of TCP are missing")
		}
		if err != nil {
			return Counters{}, err
		}
		fields := strings.Fields(string(line))
		switch {
		case len(fields) == 0 || fields[0] != "Tcp:":
		case names == nil:
			names = fields
		default:
			return counters(names, fields)
		}
	}
}

func counters(names, numbers []string) (c Counters, err error) {
	for name, to := range map[string]*uint64{"ActiveOpens": &c.ActiveOpens, "PassiveOpens": &c.PassiveOpens, "InSegs": &c.InSegs} {
		at := slices.Index(names, name)
		if at < 0 || at >= len(numbers) {
			return Counters{}, errors.New(name + " is missing")
		}
		*to, err = strconv.ParseUint(numbers[at], 10, 64)
		if err != nil {
			return Counters{}, err
		}
	}
	return c, nil
}
