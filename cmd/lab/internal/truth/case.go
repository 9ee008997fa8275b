package truth

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// truthCase is a row of the table.
type truthCase struct {
	name   string
	server *server
	flags  []string // of lameduck; nil means usualFlags
	quick  bool     // in the selection of make test
	// quickRemote puts the remote twin, which both makes, into the selection too.
	quickRemote bool
	script      func(t *trial)

	// When the signal should be sent, as doc.go says.
	notBefore time.Duration
	by        time.Duration
	slack     time.Duration
	graceful  bool // the server finishes what is in flight: lost requests alone decide

	terms

	limit
}

// terms are further conditions of a case.
type terms struct {
	remote  bool   // 20 ms from the server rather than near; see far
	reason  string // of the end of the hold, in the report; "": any
	mayCut  int    // so many lost requests are right
	precise bool   // milliseconds matter: the trial runs beside few others
}

// limit names words of docs/limits.md that a case shows, and how the verdict then deviates.
type limit struct {
	words    string
	deviates verdict
}

// usualFlags leave 49 s for the hold.
var usualFlags = []string{"--until=quiet", "--grace-period=60"}

// defaultQuietFor is --quiet-for where the flags do not say.
const defaultQuietFor = 4 * s

func (c *truthCase) words() []string {
	if c.flags == nil {
		return usualFlags
	}
	return c.flags
}

// quietFor returns --quiet-for of the case.
func (c *truthCase) quietFor() time.Duration {
	for _, word := range c.words() {
		value, ok := strings.CutPrefix(word, "--quiet-for=")
		if !ok {
			continue
		}
		if d, err := time.ParseDuration(value); err == nil {
			return d
		}
		if d, err := time.ParseDuration(value + "s"); err == nil {
			return d
		}
	}
	return defaultQuietFor
}

// missing returns what the case needs and the machine lacks.
func (c *truthCase) missing() []string {
	lacking := slices.DeleteFunc(slices.Clone(c.server.needs), func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	})
	if !c.remote {
		return lacking
	}
	if err := unix.Access(tunDevice, unix.R_OK|unix.W_OK); err != nil {
		lacking = append(lacking, tunDevice)
	}
	return lacking
}

// far returns the remote twin of a case, with ", remote" after the name.
func far(c truthCase) truthCase {
	c.name += ", remote"
	c.remote = true
	c.quick = c.quickRemote
	return c
}

// both returns each case twice: near and remote.
func both(cases ...truthCase) []truthCase {
	var all []truthCase
	for _, c := range cases {
		all = append(all, c, far(c))
	}
	return all
}

// each returns a case for each value.
func each[T any](values []T, make func(T) truthCase) []truthCase {
	var all []truthCase
	for _, v := range values {
		all = append(all, make(v))
	}
	return all
}

// seconds writes a moment relative to TERM.
func seconds(d time.Duration) string { return fmt.Sprintf("%+.1f s", d.Seconds()) }
