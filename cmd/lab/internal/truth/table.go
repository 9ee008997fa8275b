package truth

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// testdata has the table and all that its rows name.
//
//go:embed testdata
var testdata embed.FS

// truthCase is a row of the table, with its remote twin as a case of its own.
type truthCase struct {
	name   string
	server []string // a script of package peers, and its arguments
	plays  []play
	flags  []string // of lameduck

	quick   bool // in the selection of make test
	far     bool // has a remote twin
	remote  bool // rtt from the server rather than near
	rtt     time.Duration
	precise bool // milliseconds matter: the trial runs beside few others
	unasked bool // --close-idle closes no connection
	race    bool // connections are kept to the signal; see keptTally

	// When the signal should be sent, as doc.go says.
	notBefore time.Duration
	by        time.Duration
	slack     time.Duration
	quietFor  time.Duration
	graceful  bool   // the server finishes what is in flight: lost requests alone decide
	reason    string // of the end of the hold, in the report; "": any
	mayCut    int    // so many lost requests are right

	limit
}

// limit names words of docs/how-long.md that a case shows, and how the verdict then deviates.
type limit struct {
	words    string
	deviates verdict
}

// defaultQuietFor is --quiet-for where the flags do not say.
const defaultQuietFor = 4 * s

// read returns a file of testdata.
func read(name string) string { return string(must.Get(testdata.ReadFile("testdata/" + name))) }

// table returns all cases.
func table() []truthCase {
	limits := map[string][]string{}
	for _, columns := range stage.Rows(read("limits.txt")) {
		limits[columns[0]] = columns[1:]
	}
	sessions := peers.ReadSessions()
	var cases []truthCase
	for _, columns := range stage.Rows(read("table.txt")) {
		cases = append(cases, parseRow(columns, limits, sessions)...)
	}
	return cases
}

// parseRow returns the case of a row, and its remote twin if it has one.
func parseRow(columns []string, limits map[string][]string, sessions peers.Sessions) []truthCase {
	near := truthCase{name: columns[0], server: strings.Fields(columns[1]), quietFor: defaultQuietFor}
	near.plays = parsePlays(columns[2], sessions)
	twin := near
	twin.name += ", remote"
	twin.remote, twin.rtt = true, farRTT
	for word := range strings.FieldsSeq(columns[3]) {
		near.option(word, limits)
		twin.option(word, limits)
	}
	if near.far {
		return []truthCase{near, twin}
	}
	return []truthCase{near}
}

// option sets an option.
func (c *truthCase) option(word string, limits map[string][]string) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "quick":
		c.quick = !c.remote
	case "far":
		c.far = true
	case "quickfar":
		c.far, c.quick = true, c.quick || c.remote
	case "rtt":
		c.remote, c.rtt = true, peers.Duration(value)
	case "unasked":
		c.unasked = true
	case "precise":
		c.precise = true
	case "race":
		c.race = true
	case "graceful":
		c.graceful = true
	case "from":
		c.notBefore = peers.Duration(value)
	case "by":
		c.by = peers.Duration(value)
	case "slack":
		c.slack = peers.Duration(value)
	case "ends":
		c.reason = value
	case "cut":
		c.mayCut = peers.Number(value)
	case "limit":
		known := limits[value]
		if known[1] == "both" || (known[1] == "far") == c.remote {
			c.limit = limit{words: known[2], deviates: verdict(known[0])}
		}
	case "--quiet-for":
		c.quietFor = peers.Duration(value)
		c.flags = append(c.flags, word)
	default:
		if !strings.HasPrefix(word, "--") {
			panic(fmt.Sprintf("%s: unknown option %q", c.name, word))
		}
		c.flags = append(c.flags, word)
	}
}

// arguments returns lameduck's flags. The usual ones leave 49 s for the hold.
func (c *truthCase) arguments() []string {
	words := slices.Clone(c.flags)
	for _, usual := range []string{"--until=quiet", "--grace-period=60s"} {
		name, _, _ := strings.Cut(usual, "=")
		if !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, name+"=") }) {
			words = append(words, usual)
		}
	}
	return words
}

// find returns the case with a name, or nil.
func find(name string) *truthCase {
	for _, c := range table() {
		if c.name == name {
			return &c
		}
	}
	return nil
}

// missing returns what the case needs and the machine lacks.
func (c *truthCase) missing() []string {
	lacking := peers.Missing(c.server[0], "ip", "mount", "pkill")
	if c.remote && unix.Access(tunDevice, unix.R_OK|unix.W_OK) != nil {
		lacking = append(lacking, tunDevice)
	}
	return lacking
}

// seconds writes a moment relative to TERM.
func seconds(d time.Duration) string { return fmt.Sprintf("%+.1f s", d.Seconds()) }
