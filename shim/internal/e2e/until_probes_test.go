package e2e

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// kubeProbe is the request of a kubelet's HTTP probe. The kubelet opens a connection for
// each probe.
const kubeProbe = "GET /healthz HTTP/1.1\r\nHost: 10.0.0.9:80\r\nUser-Agent: kube-probe/1.34\r\nAccept: */*\r\nConnection: close\r\n\r\n"

// readinessProbes are the kinds of readiness probes.
var readinessProbes = map[string]func(ns *namespace, address string) error{
	"HTTP": func(ns *namespace, address string) error {
		conn, err := ns.connect(address)
		if err != nil {
			return err
		}
		defer conn.Close()
		fmt.Fprint(conn, kubeProbe)
		_, err = io.ReadAll(conn)
		return err
	},
	"TCP": func(ns *namespace, address string) error {
		conn, err := ns.connect(address)
		if err == nil {
			conn.Close()
		}
		return err
	},
}

// TestUntilProbes: a readiness probe on the port of the traffic, which never ends. The hold
// ends at most ten seconds after the last request. With --no-ignore-probes frequent probes
// prolong the hold to the ceiling, and the report points them out; probes that send no byte
// never do.
func TestUntilProbes(t *testing.T) {
	t.Parallel()
	const quiet = 4 * time.Second // the default of --quiet-for
	for kind, probe := range readinessProbes {
		// The search for a lull begins half a period after a probe, so that the report's last
		// sample shows no probe under way.
		counted := probesCase{[]string{"--no-ignore-probes", "--max-delay=18.5s"}, time.Second, 11 * time.Second, 19 * time.Second, "ceiling"}
		if kind == "TCP" {
			counted.least, counted.most = quiet, 6*time.Second
			counted.reason = "quiet"
		}
		for name, c := range map[string]probesCase{
			"every 1 s":                 {[]string{"--ignore-probes"}, time.Second, quiet, 10 * time.Second, "quiet"},
			"every 5 s":                 {[]string{"--ignore-probes"}, 5 * time.Second, quiet, 10 * time.Second, "quiet"},
			"every 10 s":                {[]string{"--ignore-probes"}, 10 * time.Second, quiet, 10 * time.Second, "quiet"},
			"every 5 s, silence of 6 s": {[]string{"--ignore-probes", "--quiet-for=6"}, 5 * time.Second, 6 * time.Second, 10 * time.Second, "quiet"},
			"every 1 s, patiently":      {nil, time.Second, quiet, 10 * time.Second, "quiet"},
			"every 2 s, patiently":      {nil, 2 * time.Second, quiet, 10 * time.Second, "quiet"},
			"every 5 s, patiently":      {nil, 5 * time.Second, quiet, 10 * time.Second, "quiet"},
			"every 1 s, counted":        counted,
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				c.run(t, kind, probe)
			})
		}
	}
}

type probesCase struct {
	flags       []string
	period      time.Duration
	least, most time.Duration // after the last request
	reason      string
}

func (c probesCase) run(t *testing.T, kind string, probe func(ns *namespace, address string) error) {
	ns := newNamespace(t)
	a := ns.bootUntil("stage:uid=65534", "quiet", append(c.flags, "--grace-period=30"), helperCommand("web", "plain", "127.0.0.1:0")...)
	address := a.addr("127.0.0.1")
	var probedAt []time.Time
	endProbes := repeatEvery(c.period, func() {
		if err := probe(ns, address); err != nil {
			t.Errorf("probe: %v", err)
		}
		probedAt = append(probedAt, time.Now())
	})
	defer endProbes()
	var last atomic.Int64 // the time of the last reply to a request
	endRequests := repeatEvery(170*time.Millisecond, func() {
		get(t, ns.oneRequestTransport(), "http://"+address)
		last.Store(time.Now().UnixNano())
	})
	start := a.trigger()
	time.Sleep(time.Until(start.Add(6 * time.Second))) // the load balancer's traffic goes on
	endRequests()
	got := a.out.wait(t, "got TERM").at.Sub(time.Unix(0, last.Load()))
	endProbes()
	if off := maxJitter(probedAt); off > max(c.period/10, 50*time.Millisecond)/2 {
		a.t.Skipf("the machine is too busy for probes every %v: the jitter was %v", c.period, off)
	}
	if got < c.least-500*time.Millisecond || got > c.most+500*time.Millisecond {
		t.Errorf("the hold ended %v after the last request, want %v to %v", got, c.least, c.most)
	}
	a.sendLine("exit 7")
	a.wantExit(7)
	if ended := a.figures().Ended; ended == nil || *ended != c.reason {
		t.Errorf("report: %s\nwant the reason %s", a.report(), c.reason)
	}
	c.wantHint(t, kind, a)
}

// wantHint checks that the report points out the probe if the probe has prolonged the hold
// to the ceiling.
func (c probesCase) wantHint(t *testing.T, kind string, a *app) {
	t.Helper()
	hint := `^what looks like a health probe, 0 bytes from 127\.0\.0\.1 on port \d+ every (0\.[6-9]|1\.\d) s, until `
	if kind == "HTTP" {
		hint = strings.Replace(hint, "0 bytes", fmt.Sprint(len(kubeProbe), " bytes"), 1)
	}
	cause := ""
	if prolonged := a.figures().ProlongedBy; prolonged != nil {
		cause = *prolonged
	}
	if regexp.MustCompile(hint).MatchString(cause) != (c.reason == "ceiling") {
		t.Errorf("report: %s\nwant the hint at probes: %v", a.report(), c.reason == "ceiling")
	}
}

// maxJitter returns the largest difference between two successive gaps.
func maxJitter(times []time.Time) (most time.Duration) {
	for i := 2; i < len(times); i++ {
		most = max(most, (times[i].Sub(times[i-1]) - times[i-1].Sub(times[i-2])).Abs())
	}
	return most
}
