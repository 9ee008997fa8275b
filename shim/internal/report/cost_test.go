package report

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
)

// newCost returns what the end of a server cost that died of TERM while its balancer went on.
func newCost() *Cost {
	c := &Cost{Now: at(7.4), Grace: 30 * time.Second}
	c.TERM, c.Limit, c.QuietFor, c.Ceiling = trigger, 29*time.Second, 4*time.Second, 19*time.Second
	c.Ends = []cost.End{{Port: 8080, At: at(0.1), Cut: 3}}
	c.Refused, c.LastRefused, c.PerSecond = 41, at(3.4), []int{15, 13, 10, 3}
	c.LastNew, c.LastByte, c.InUse = at(0.05), at(0.06), 3
	return c
}

// nothingLost makes it a server that a hold of so many seconds kept serving.
func (c *Cost) nothingLost(held float64) {
	c.Ends[0] = cost.End{Port: 8080, At: at(held)}
	c.Refused, c.LastRefused, c.PerSecond, c.InUse = 0, time.Time{}, nil, 0
	c.LastNew, c.LastByte = at(held-4.1), at(held-4)
}

// costCases are for the golden file: what differs from the stop that newCost returns.
var costCases = []struct {
	name   string
	change func(c *Cost)
}{
	{"watch", func(*Cost) {}},
	{"watch, in an assumed grace period", func(c *Cost) { c.GraceAssumed = true }},
	{"watch, nobody came", func(c *Cost) {
		c.nothingLost(0.1)
		c.Ends[0].Cut = 1
	}},
	{"watch, TERM after the server's end", func(c *Cost) {
		c.TERM = at(2)
		c.OfProbes = 2
	}},
	{"watch, TERM after the end of a hold", func(c *Cost) {
		c.nothingLost(7.4)
		c.TERM = at(8)
	}},
	{"watch, a grace period that is too short", func(c *Cost) { c.Ceiling = 5 * time.Second }},
	{"watch, clients that keep their connections", func(c *Cost) {
		c.nothingLost(12)
		c.LastNew, c.LastByte, c.InUse, c.Ends[0].Cut = at(3), at(12), 24, 2
		c.Refused, c.LastRefused, c.PerSecond = 1, at(12.1), []int{1}
	}},
	{"watch, several ports", func(c *Cost) {
		c.Ends = append(c.Ends, cost.End{Port: 9090, At: at(2.5)})
		c.Listening = []uint16{22}
	}},
	{"watch, the server serves on", func(c *Cost) {
		c.nothingLost(1)
		c.Ends, c.Listening, c.Now = nil, []uint16{8080}, at(29)
	}},
	{"watch, nothing listens", func(c *Cost) {
		c.nothingLost(1)
		c.Ends = nil
	}},
	{"watch, without sock_diag and counters", func(c *Cost) {
		c.Source = "/proc/net"
		c.Uncounted = errors.New("open /proc/net/snmp: no such file or directory")
	}},
	{"watch, a stream and requests", func(c *Cost) { c.Streams = 1 }},
	{"watch, events missed", func(c *Cost) { c.CutAtLeast = true }},
}

// namesOfCost are the promised names of a verdict in JSON.
const namesOfCost = "trigger cut streams refused refused_probes last_refused_ms server_ended_ms held_would_ms needed_delay_ms " +
	"grace_ms grace_assumed ended listening"

// TestCostInJSON: the verdict has all names, and its message is that in words.
func TestCostInJSON(t *testing.T) {
	for _, c := range costCases {
		v := newCost()
		c.change(v)
		var entry map[string]any
		if err := json.Unmarshal([]byte(v.JSON()), &entry); err != nil || entry["message"] != strings.Join(v.Lines(), "; ") {
			t.Errorf("%s: %v: %s", c.name, err, v.JSON())
		}
		for _, name := range strings.Fields(ofLine + namesOfCost) {
			if _, has := entry[name]; !has {
				t.Errorf("%s: no %s", c.name, name)
			}
		}
		if len(entry) != len(strings.Fields(ofLine+namesOfCost)) || slices.ContainsFunc(v.Lines(), malformed.MatchString) {
			t.Errorf("%s: %v", c.name, entry)
		}
	}
}
