package truth

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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
	server []string // a script in testdata/servers, and its arguments
	plays  []play
	flags  []string // of lameduck

	quick   bool // in the selection of make test
	far     bool // has a remote twin
	remote  bool // 20 ms from the server rather than near
	precise bool // milliseconds matter: the trial runs beside few others
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
func read(name string) string { return string(must(testdata.ReadFile("testdata/" + name))) }

// readRows returns the columns of each row of a file. Empty lines and comments are left out.
func readRows(file string) [][]string {
	var all [][]string
	for line := range strings.Lines(read(file)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		all = append(all, fields)
	}
	return all
}

// table returns all cases.
func table() []truthCase {
	limits := map[string][]string{}
	for _, columns := range readRows("limits.txt") {
		limits[columns[0]] = columns[1:]
	}
	sessions := map[string]string{}
	for _, columns := range readRows("sessions.txt") {
		sessions[columns[0]] = columns[1]
	}
	var cases []truthCase
	for _, columns := range readRows("table.txt") {
		cases = append(cases, parseRow(columns, limits, sessions)...)
	}
	return cases
}

// parseRow returns the case of a row, and its remote twin if it has one.
func parseRow(columns []string, limits map[string][]string, sessions map[string]string) []truthCase {
	near := truthCase{name: columns[0], server: strings.Fields(columns[1]), quietFor: defaultQuietFor}
	near.plays = parsePlays(columns[2], sessions)
	twin := near
	twin.name += ", remote"
	twin.remote = true
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
	case "precise":
		c.precise = true
	case "race":
		c.race = true
	case "graceful":
		c.graceful = true
	case "from":
		c.notBefore = duration(value)
	case "by":
		c.by = duration(value)
	case "slack":
		c.slack = duration(value)
	case "ends":
		c.reason = value
	case "cut":
		c.mayCut = number(value)
	case "limit":
		known := limits[value]
		if known[1] == "both" || (known[1] == "far") == c.remote {
			c.limit = limit{words: known[2], deviates: verdict(known[0])}
		}
	case "--quiet-for":
		c.quietFor = duration(value)
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

// script returns the text of the server's script.
func (c *truthCase) script() string { return read("servers/" + c.server[0] + ".sh") }

// missing returns what the case needs and the machine lacks. The first line of a server's
// script has the names of its programs, patterns of the files it needs, and "other-users" if it
// needs another than root.
func (c *truthCase) missing() []string {
	first, _, _ := strings.Cut(c.script(), "\n")
	var lacking []string
	for _, need := range append(strings.Fields(first)[2:], "ip", "mount") {
		_, err := exec.LookPath(need)
		files, _ := filepath.Glob(need)
		if err != nil && len(files) == 0 && (need != "other-users" || !otherUsers()) {
			lacking = append(lacking, need)
		}
	}
	if c.remote && unix.Access(tunDevice, unix.R_OK|unix.W_OK) != nil {
		lacking = append(lacking, tunDevice)
	}
	return lacking
}

// otherUsers reports that the user namespace has a further user than root.
func otherUsers() bool {
	users, _ := os.ReadFile("/proc/self/uid_map")
	return !strings.HasSuffix(string(users), " 1\n")
}

// must returns the value of a call. An error would be a mistake in the program or the table.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// duration reads a duration; "" is none.
func duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	return must(time.ParseDuration(text))
}

// number reads a number; "" is 0.
func number(text string) int {
	if text == "" {
		return 0
	}
	return must(strconv.Atoi(text))
}

// seconds writes a moment relative to TERM.
func seconds(d time.Duration) string { return fmt.Sprintf("%+.1f s", d.Seconds()) }
