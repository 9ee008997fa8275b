package images

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// lag is how long after the stop the balancer still sends.
	lag = 2 * time.Second
	// grace is what podman stop gives.
	grace = 30 * time.Second
	// enough is how many requests must come after the stop, on a machine so busy that
	// not all are sent.
	enough = 20
)

// image is a Dockerfile, and what it promises.
type image struct {
	dockerfile, context string   // of the folder here, unless said otherwise
	build, run          []string // flags of podman for them
	port                int      // 8080
	talk                talk     // HTTP
	trigger, sends      string   // the signal that comes, and what becomes of it
	code                string   // the container's exit code
}

// TestStop: each image is stopped in the midst of load that goes on for a while. With
// lameduck no request is lost; the same image without it loses some.
func TestStop(t *testing.T) {
	p := newPodman(t)
	golang := p.golang(t)
	config, err := filepath.Abs("haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(*testing.T) image{
		"haproxy": func(t *testing.T) image {
			p.haproxy(t)
			behind(t)
			return image{dockerfile: root + "/Dockerfile.example", context: root, build: golang,
				run:     []string{"-v", config + ":/usr/local/etc/haproxy/haproxy.cfg:ro"},
				trigger: "USR1", sends: "USR1", code: "0"}
		},
		"nginx": func(t *testing.T) image {
			p.nginx(t)
			return image{run: []string{"--stop-signal=SIGTERM"}, // whatever the image says
				trigger: "TERM", sends: "QUIT", code: "0"}
		},
		"go": func(*testing.T) image {
			return image{build: golang, trigger: "TERM", sends: "TERM", code: "143"}
		},
		"jvm": func(t *testing.T) image {
			java := p.temurin(t)
			return image{build: java, run: java, trigger: "TERM", sends: "TERM", code: "0"}
		},
		"php-fpm": func(t *testing.T) image {
			p.fpm(t)
			return image{port: 9000, talk: speakFastCGI, trigger: "QUIT", sends: "QUIT", code: "0"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := prepare(t)
			if i.context == "" {
				i.dockerfile, i.context = name+"/Dockerfile", name
			}
			if i.talk == nil {
				i.port, i.talk = 8080, speakHTTP
			}
			p.build(t, name+":test", i.dockerfile, i.context, i.build...)
			t.Run("lameduck", func(t *testing.T) { t.Parallel(); p.drains(t, name+":test", i) })
			t.Run("bare", func(t *testing.T) { t.Parallel(); p.drops(t, name+":test", i) })
		})
	}
}

// behind serves what HAProxy passes on.
func behind(t *testing.T) {
	t.Helper()
	output(t, "ip", "link", "set", "lo", "up")
	output(t, "ip", "addr", "add", "10.77.0.1/32", "dev", "lo")
	listener, err := net.Listen("tcp", "10.77.0.1:8081")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(4 * time.Second)
		}
		io.WriteString(w, "ok\n")
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
}

// stopUnderLoad starts a container, and stops it while requests come, and for lag
// longer than it takes until that has begun.
func (p *podman) stopUnderLoad(t *testing.T, i image, begins func(*container, *load) bool, words ...string) (*container, tally) {
	t.Helper()
	c := p.start(t, slices.Concat(i.run, words)...)
	address := fmt.Sprintf("%s:%d", c.address, i.port)
	if err := until(func() (bool, error) {
		if status := c.state("Status"); status != "running" {
			return false, fmt.Errorf("it is %s", status)
		}
		l, err := dial(address)
		if err != nil {
			return false, nil
		}
		defer l.Close()
		return i.talk(l, false, false) == nil, nil
	}); err != nil {
		t.Fatalf("it does not serve: %v\n%s", err, c.logs())
	}
	load := press(address, i.talk)
	defer load.close()
	if err := until(load.runs); err != nil {
		t.Fatalf("no load: %v\n%s", err, c.logs())
	}
	done := c.stop(grace)
	if err := until(func() (bool, error) { return begins(c, load), nil }); err != nil {
		t.Fatalf("nothing tells of a stop: %v\n%s", err, c.logs())
	}
	begun := time.Now()
	time.Sleep(lag) // the balancer's
	requests := count(load.cease(), begun)
	how := <-done
	t.Logf("gone after %.1f s; %v", how.took.Seconds(), requests)
	if how.err != nil || how.killed || how.took >= grace {
		t.Errorf("podman killed it: %+v", how)
	}
	return c, requests
}

// drains: the image as it is. How long it has is said by the place.
func (p *podman) drains(t *testing.T, name string, i image) {
	holds := func(c *container, _ *load) bool { return strings.Contains(c.logs(), `"trigger":`) }
	c, requests := p.stopUnderLoad(t, i, holds, "-e", fmt.Sprintf("LAMEDUCK_GRACE_PERIOD=%.0f", grace.Seconds()), "-e", "LAMEDUCK_LOG_FORMAT=json", name)
	if requests.failed > 0 || requests.late < enough {
		t.Errorf("%d requests failed; %d came after the stop, want %d", requests.failed, requests.late, enough)
	}
	if code := c.state("ExitCode"); code != i.code {
		t.Errorf("it left with %s, want %s", code, i.code)
	}
	r := c.report()
	sent := r.Sent
	if r.Trigger != i.trigger || r.Ended != "quiet" || r.HeldMS < lag.Milliseconds() || len(sent) != 1 || sent[0].Signal != i.sends {
		t.Errorf("it was not held until quiet, from %s to %s: %+v\n%s", i.trigger, i.sends, r, c.logs())
	}
}

// report is what lameduck says in JSON of a stop: docs/report.md.
type report struct {
	Trigger, Ended string
	HeldMS         int64 `json:"held_ms"`
	Sent           []struct{ Signal string }
	Message        string
}

// report is the last line of lameduck's, among those of the program.
func (c *container) report() (r report) {
	c.t.Helper()
	for text := range strings.Lines(c.logs()) {
		if strings.HasPrefix(text, `{"schema":1,`) {
			r = report{}
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				c.t.Error(err)
			}
		}
	}
	c.t.Log(r.Message)
	return r
}

// drops: the same command, from the same image, is PID 1 itself. The stop has begun
// when a request fails; if none did, the other test would prove nothing.
func (p *podman) drops(t *testing.T, name string, i image) {
	fails := func(_ *container, l *load) bool { _, err := l.runs(); return err != nil }
	command := p.config(t, name).Cmd
	p.stopUnderLoad(t, i, fails, append([]string{"--entrypoint", command[0], name}, command[1:]...)...)
}
