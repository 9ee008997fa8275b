package shim

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// FuzzWords: the value of a flag is within bounds and survives printing and parsing;
// errors are one line.
func FuzzWords(f *testing.F) {
	for _, text := range []string{
		"10", "1m30s", "0", ".5", "1e400", "-0", "8760h", "8761h", "9223372036854775807ns", "1_0", "0x1p2", "+3", "NaN",
		"USR1/30s/TERM/5s/KILL", "-32", "TERM/-33", "-10/30/-15", "TERM/1s/forever/KILL/1", "30", "forever", "/", "5/5", "TERM/0/KILL", "0", "TERM/-0",
		"TERM", "sigusr1", "15", "RTMIN+3", "RTMAX-3", "rtmin", "SIG9", "RTMIN+31", "+15",
		"TERM:USR1", "HUP:0", "15:10", "sigrtmin+1:RTMAX-1", "KILL:TERM", ":", "TERM:USR1:HUP",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		means(t, text, d, err, ParseDuration)
		if d < 0 || d > stop.MaxDuration {
			t.Errorf("%q is %v", text, d)
		}
		s, err := ParseSignal(text)
		means(t, text, s, err, ParseSignal)
		if err == nil && (s < 1 || s > sig.Max) {
			t.Errorf("%q is signal %d", text, int(s))
		}
		r, err := ParseRewrite(text)
		means(t, text, r, err, ParseRewrite)
		schedule(t, text)
	})
}

// meaning is a parsed value that can be printed.
type meaning interface {
	comparable
	String() string
}

func means[M meaning](t *testing.T, text string, m M, err error, read func(string) (M, error)) {
	t.Helper()
	if err != nil {
		oneLine(t, text, err)
		return
	}
	if again, err := read(m.String()); again != m || err != nil {
		t.Errorf("%q is %v, which is %v, %v", text, m, again, err)
	}
}

func oneLine(t *testing.T, text string, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q: more than one line: %q", text, err)
	}
}

var negative = regexp.MustCompile(`(^| )-[0-9]`)

// schedule checks that a schedule sends a signal, survives printing and parsing, and leads
// to a plan with sensible times.
func schedule(t *testing.T, text string) {
	s, err := ParseSchedule(text)
	if err != nil {
		oneLine(t, text, err)
		return
	}
	if again, err := ParseSchedule(s.String()); err != nil || again.String() != s.String() {
		t.Errorf("%q is %v, which is %v, %v", text, s, again, err)
	}
	kill, named := s.TimeToKill()
	if last := s.TimeToLast(); last < 0 || s.InitialWait() < 0 || named && (kill < 0 || kill > last) {
		t.Errorf("%q: %v before, KILL at %v, the last at %v", text, s.InitialWait(), kill, last)
	}
	for _, cfg := range []Config{{Schedule: s}, {Schedule: s, Delay: time.Hour}, {Schedule: s, Until: Quiet, GracePeriod: time.Minute}} {
		p, err := Review(cfg)
		if err != nil {
			oneLine(t, text, err)
		} else if said := p.Explain(false); negative.MatchString(said) {
			t.Errorf("%q: %s", text, said)
		}
	}
}
