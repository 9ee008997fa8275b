package rollout

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestLags(t *testing.T) {
	for seed := range uint64(200) {
		drawn := drawLags(allLags, seed, 1, 2, 1)
		if again := drawLags(allLags, seed, 1, 2, 1); !reflect.DeepEqual(drawn, again) {
			t.Fatalf("seed %d: %v and then %v", seed, drawn, again)
		}
		met := map[string]bool{}
		for _, d := range drawn {
			met[d.Name] = true
			if d.Lag < 200*time.Millisecond || d.Lag > 10*time.Second {
				t.Errorf("seed %d: %v", seed, d)
			}
		}
		if len(met) != len(allLags) {
			t.Errorf("seed %d: not every distribution: %v", seed, drawn)
		}
		for i, half := range drawLags(allLags, seed, 1, 2, 0.5) {
			if diff := drawn[i].Lag - 2*half.Lag; diff < -2 || diff > 2 {
				t.Errorf("seed %d: half of %v is %v", seed, drawn[i], half)
			}
		}
	}
}

// TestPlan: every contender meets every server and the same lags, and the seed decides the
// order.
func TestPlan(t *testing.T) {
	o := &options{seed: 7, scale: 1, repeat: 2, contenders: contenders(), servers: allServers(), lags: allLags}
	trials := plan(o)
	want := 0
	for _, s := range o.servers {
		for _, c := range o.contenders {
			if c.plays(s.scene) {
				want += 2
			}
		}
	}
	if len(trials) != want {
		t.Errorf("%d trials, want %d", len(trials), want)
	}
	for i, again := range plan(o) {
		a := trials[i]
		if a.Contender != again.Contender || a.Server != again.Server || !reflect.DeepEqual(a.lags, again.lags) {
			t.Fatalf("trial %d is another one the second time", i)
		}
		at := slices.IndexFunc(o.servers, func(s server) bool { return s.name == a.Server })
		if !reflect.DeepEqual(a.lags, drawLags(allLags, 7, a.Repetition, at, 1)) {
			t.Errorf("trial %d has other lags", i)
		}
	}
}

func TestFlags(t *testing.T) {
	find := func(name string) *contender {
		for _, c := range contenders() {
			if c.name == name {
				return &c
			}
		}
		t.Fatalf("no %q", name)
		return nil
	}
	haproxy := server{graceful: 10}
	for name, c := range map[string]struct {
		contender string
		scale     scale
		server    server
		want      []string
	}{
		"defaults are left out": {"lameduck --until=quiet", 1, server{graceful: 15}, []string{"--grace-period=30s", "--until=quiet", "--"}},
		"unless compressed":     {"lameduck --until=quiet", 0.5, haproxy, []string{"--grace-period=30s", "--until=quiet", "--rewrite=TERM:10", "--quiet-for=2s", "--max-delay=9.5s", "--"}},
		"a short silence":       {"lameduck --until=settled" + short, 1, haproxy, []string{"--grace-period=30s", "--until=settled", "--rewrite=TERM:10", "--quiet-for=1s", "--"}},
		"a floor alone":         {"lameduck --delay=5", 1, haproxy, []string{"--grace-period=30s", "--until=elapsed", "--rewrite=TERM:10", "--delay=5s", "--"}},
		"a floor and a silence": {floored, 1, server{graceful: 15}, []string{"--grace-period=30s", "--until=quiet", "--delay=10s", "--"}},
		"a longer grace period": {"lameduck --until=quiet", 0.5, server{graceful: 15, grace: time.Minute}, []string{"--grace-period=1m0s", "--until=quiet", "--quiet-for=2s", "--max-delay=24.5s", "--"}},
	} {
		if got := find(c.contender).flags(c.scale, &c.server); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
