package observe

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// inodeOf returns the inode of a connection's socket.
func inodeOf(conn *net.TCPConn) (inode uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var stat unix.Stat_t
	control := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) })
	if err == nil {
		err = control
	}
	return uint32(stat.Ino), err
}

// TestLastSample: a sample is taken just before a hold ends, whatever the pause.
func TestLastSample(t *testing.T) {
	const end = 2 * time.Second
	for _, gate := range []stop.Gate{{Floor: end}, {Until: stop.Quiet, Floor: time.Second, Ceiling: end}} {
		cfg := Config{Gate: gate, Traffic: traffic.Config{Poll: 250 * time.Millisecond}}
		for _, at := range []time.Duration{1800 * time.Millisecond, 1950 * time.Millisecond, 1990 * time.Millisecond} {
			cfg.Start = time.Now().Add(-at)
			s := newSampler(cfg, nil)
			s.observer = &observer{}
			if pause := s.pause(0); pause > end-at-lastSampleLead || pause <= 0 {
				t.Errorf("until %q: at %v the pause is %v", gate.Until, at, pause)
			}
		}
	}
}

// TestPause: samples are less frequent after the hold, and with very many sockets.
func TestPause(t *testing.T) {
	for name, c := range map[string]struct {
		slowed  bool
		sockets int
		took    time.Duration
		want    time.Duration
	}{
		"in the hold":    {false, 10, time.Second, usual.Poll},
		"after the hold": {true, 10, time.Second, afterHoldInterval},
		"many sockets":   {false, manySockets + 1, time.Second, 10 * time.Second},
		"quickly listed": {false, manySockets + 1, time.Millisecond, usual.Poll},
	} {
		s := newSampler(Config{Start: time.Now().Add(-time.Hour), Traffic: usual}, nil)
		s.observer = &observer{sockets: c.sockets}
		s.slowed.Store(c.slowed)
		if got := s.pause(c.took); got < c.want || got > c.want+c.want/2 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestPauseSilence: a sample is taken when silence may have lasted long enough, since the
// trigger or since the last byte or connection, whatever the pause.
func TestPauseSilence(t *testing.T) {
	for _, ago := range []time.Duration{time.Millisecond, usual.QuietFor / 2} {
		now := time.Now()
		at := now.Add(-ago)
		for name, c := range map[string]struct {
			start time.Time
			last  traffic.Summary
		}{
			"trigger":    {start: at},
			"byte":       {now.Add(-time.Hour), traffic.Summary{LastByte: at}},
			"connection": {now.Add(-time.Hour), traffic.Summary{LastNew: at}},
		} {
			s := newSampler(Config{Start: c.start, Gate: stop.Gate{Until: stop.Quiet, Ceiling: 2 * time.Hour}, Traffic: usual}, nil)
			s.observer = &observer{sockets: manySockets + 1}
			s.snapshot.Traffic = c.last
			if got := s.pause(time.Minute); got <= 0 || got > usual.QuietFor-ago {
				t.Errorf("%s, %v ago: %v", name, ago, got)
			}
		}
	}
}

// TestStart: the sampler publishes snapshots until the process ends, and takes SlowDown at
// any time.
func TestStart(t *testing.T) {
	out, woken := make(chan Snapshot, 1), make(chan bool, 1000)
	cfg := Config{Start: time.Now(), Traffic: usual, Ports: []uint16{1}, Gate: stop.Gate{Until: stop.Quiet}, Wake: func() { woken <- true }}
	cfg.Traffic.Poll = 10 * time.Millisecond
	s := Start(cfg, out)
	for range 3 {
		<-woken
		got := <-out
		if got.Began.Before(cfg.Start) || !slices.Equal(got.Scope.Ports, []uint16{1}) || got.Observer == "" || got.Observer == None {
			t.Errorf("%+v", got)
		}
		s.Continue(false)
	}
	s.SlowDown()
}

// TestWaitGonePaths: a snapshot names the paths that exist.
func TestWaitGonePaths(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	testutil.WriteFile(t, there, "")
	s := newSampler(Config{WaitGone: []string{filepath.Join(dir, "gone"), there}}, nil)
	s.observer = &observer{}
	for _, want := range [][]string{{there}, nil} {
		s.take(time.Now())
		if got := s.snapshot.PathsPresent; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		os.Remove(there)
	}
}

// TestStates: the state of each verdict.
func TestStates(t *testing.T) {
	quiet := traffic.Verdict{Settled: true, Quiet: true}
	gone := traffic.Verdict{Settled: true, Quiet: true, Drained: true, NoSockets: true}
	for name, c := range map[string]struct {
		cfg     Config
		verdict traffic.Verdict
		want    stop.TrafficState
	}{
		"busy":                   {Config{Gate: stop.Gate{Until: stop.Quiet}}, traffic.Verdict{Settled: true}, stop.Busy},
		"settled":                {Config{Gate: stop.Gate{Until: stop.Settled}}, traffic.Verdict{Settled: true}, stop.ConditionMet},
		"quiet":                  {Config{Gate: stop.Gate{Until: stop.Quiet}}, quiet, stop.ConditionMet},
		"not drained":            {Config{Gate: stop.Gate{Until: stop.Drained}}, quiet, stop.Busy},
		"drained":                {Config{Gate: stop.Gate{Until: stop.Drained}}, gone, stop.ConditionMet},
		"a fixed delay":          {Config{}, gone, stop.Busy},
		"stuck":                  {Config{Gate: stop.Gate{Until: stop.Quiet}}, traffic.Verdict{Settled: true, Quiet: true, Stuck: true}, stop.Hung},
		"server gone, a hook":    {Config{Gate: stop.Gate{Until: stop.Quiet}, DetectServerGone: true}, gone, stop.ServerGone},
		"server gone, a command": {Config{Gate: stop.Gate{Until: stop.Quiet}}, gone, stop.ConditionMet},
	} {
		c.cfg.Traffic = usual
		s := newSampler(c.cfg, nil)
		s.state(trigger, traffic.Verdict{}) // with a server
		if got := s.state(trigger.Add(usual.QuietFor), c.verdict); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	s := newSampler(Config{Gate: stop.Gate{Until: stop.Quiet}, DetectServerGone: true, Traffic: usual}, nil)
	if got := s.state(trigger, gone); got != stop.ConditionMet {
		t.Errorf("no server so far: %v", got)
	}
}

// TestRescan: the listeners are found anew every Config.Rescan, and else once.
func TestRescan(t *testing.T) {
	for _, rescan := range []time.Duration{0, 2 * time.Second} {
		start := time.Now()
		s := newSampler(Config{Start: start, Traffic: usual, Ports: []uint16{1}, Rescan: rescan}, nil)
		for second, again := range []bool{true, false, rescan > 0, false} {
			before := s.observer
			s.scan(start.Add(time.Duration(second) * time.Second))
			if scanned := s.observer != before; scanned != again {
				t.Errorf("rescan every %v: at %d s, found anew is %v", rescan, second, scanned)
			}
			if before != nil && s.observer != before && (before.source.conn != nil || before.events.reporting()) {
				t.Error("the observer before is not closed")
			}
		}
		s.observer.close()
	}
}
