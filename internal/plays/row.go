package plays

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

//go:embed table.txt
var rows string

//go:embed limits.txt
var limits string

// Row is a row of the table, with its remote twin as a case of its own.
type Row struct {
	Name   string
	Server []string // a script of package peers, and its arguments
	Plays  []Play
	Flags  []string // of lameduck

	Simulated bool // played in the simulated kernel, too
	Quick     bool // in the selection of make test
	Far       bool // has a remote twin
	Remote    bool // rtt from the server rather than near
	RTT       time.Duration
	Precise   bool // milliseconds matter: the trial runs beside few others
	Unasked   bool // --close-idle closes no connection
	Race      bool // connections are kept to the signal

	// Of lab kept.
	Lag          time.Duration // from TERM until new connections of pools go to another server
	Sleep        time.Duration // in place of lameduck: the stop of the server comes so late
	Stop         string        // its signal then, as lameduck's presets have it
	Unprivileged bool          `name:"nobody"` // the server is another user's than root
	Retries      bool          // the clients send again what the server has not processed

	// When the signal should be sent, as doc.go says.
	NotBefore time.Duration `name:"from"`
	By        time.Duration
	Slack     time.Duration
	QuietFor  time.Duration
	Graceful  bool   // the server finishes what is in flight: lost requests alone decide
	Reason    string `name:"ends"` // of the end of the hold, in the report; "": any
	MayCut    int    `name:"cut"`  // so many lost requests are right

	Limit
}

// Limit names words of docs/how-long.md that a case shows, and how the verdict then deviates.
type Limit struct {
	Words    string
	Deviates Verdict
}

const (
	defaultQuietFor = 4 * s   // --quiet-for where the flags do not say
	farRTT          = 40 * ms // of a remote twin: from data to its acknowledgment
)

// Limits returns the rows of limits.txt by name, without the names.
func Limits() map[string][]string {
	all := map[string][]string{}
	for _, columns := range Rows(limits) {
		all[columns[0]] = columns[1:]
	}
	return all
}

// Table returns all cases.
func Table() []Row {
	limits, sessions := Limits(), ReadSessions()
	var cases []Row
	for _, columns := range Rows(rows) {
		cases = append(cases, parseRow(columns, limits, sessions)...)
	}
	return cases
}

// parseRow returns the case of a row, and its remote twin if it has one.
func parseRow(columns []string, limits map[string][]string, sessions Sessions) []Row {
	near := Row{Name: columns[0], Server: strings.Fields(columns[1]), QuietFor: defaultQuietFor, Stop: "TERM"}
	near.Plays = Parse(columns[2], sessions)
	twin := near
	twin.Name += ", remote"
	twin.Remote, twin.RTT = true, farRTT
	for word := range strings.FieldsSeq(columns[3]) {
		near.option(word, limits)
		twin.option(word, limits)
	}
	if near.Far {
		return []Row{near, twin}
	}
	return []Row{near}
}

// option sets an option.
func (c *Row) option(word string, limits map[string][]string) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "quick":
		c.Quick = !c.Remote
	case "quickfar":
		c.Far, c.Quick = true, c.Quick || c.Remote
	case "rtt":
		c.Remote, c.RTT = true, Duration(value)
	case "limit":
		limit := limits[value]
		if limit[1] == "both" || (limit[1] == "far") == c.Remote {
			c.Limit = Limit{Words: limit[2], Deviates: Verdict(limit[0])}
		}
	case "--quiet-for":
		c.QuietFor = Duration(value)
		c.Flags = append(c.Flags, word)
	default:
		if strings.HasPrefix(word, "--") {
			c.Flags = append(c.Flags, word)
		} else if !tables.Set(c, name, value) {
			panic(fmt.Sprintf("%s: option %q", c.Name, word))
		}
	}
}

// Arguments returns lameduck's flags. The usual ones leave 49 s for the hold.
func (c *Row) Arguments() []string {
	words := slices.Clone(c.Flags)
	for _, usual := range []string{"--until=quiet", "--grace-period=60s"} {
		name, _, _ := strings.Cut(usual, "=")
		if !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, name+"=") }) {
			words = append(words, usual)
		}
	}
	return words
}

// Find returns the case of a table with a name, or nil.
func Find(name string) *Row {
	for _, c := range append(Table(), Kept()...) {
		if c.Name == name {
			return &c
		}
	}
	return nil
}

// Lead returns the time from the beginning of the plays to TERM.
func (c *Row) Lead() time.Duration {
	lead := time.Duration(0)
	for _, p := range c.Plays {
		lead = max(lead, p.Jitter-p.From)
	}
	return lead
}

// Rows returns the columns of each row of a table, and empty columns up to the widest table's.
func Rows(text string) [][]string {
	all := tables.Rows(text)
	for i := range all {
		all[i] = append(all[i], make([]string, 9-len(all[i]))...)
	}
	return all
}
