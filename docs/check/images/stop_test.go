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

	client "github.com/lameduck-init/lameduck/cmd/lab/load"
)

const (
	// lag is the time after the stop for which the balancer still sends.
	lag = 2 * time.Second
	// grace is the grace period of podman stop.
	grace = 30 * time.Second
	// enough is the number of requests that must come after the stop, on a machine too
	// busy to send all.
	enough = 20
)

// image is a Dockerfile and its promises.
type image struct {
	dockerfile, context string   // by default of the folder in docs/examples/docker
	build, run          []string // flags of podman
	port                int      // by default 8080
	talk                talk     // by default HTTP
	trigger, sends      string   // the signal from podman, and the signal to the server
	code                string   // the container's exit code
}

// TestStop: each image is stopped under a load that goes on for a while. With lameduck no
// request is lost; without lameduck the same image loses requests.
func TestStop(t *testing.T) {
	e := newEngine(t)
	golang := e.golang(t)
	config, err := filepath.Abs(examples + "/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(*testing.T) image{
		"haproxy": func(t *testing.T) image {
			e.haproxy(t)
			behind(t)
			return image{dockerfile: root + "/Dockerfile.example", context: root,
				run:     []string{"-v", config + ":/usr/local/etc/haproxy/haproxy.cfg:ro"},
				trigger: "USR1", sends: "USR1", code: "0"}
		},
		"nginx": func(t *testing.T) image {
			e.nginx(t)
			return image{run: []string{"--stop-signal=SIGTERM"}, // in place of the image's
				trigger: "TERM", sends: "QUIT", code: "0"}
		},
		"go": func(*testing.T) image {
			return image{build: golang, trigger: "TERM", sends: "TERM", code: "143"}
		},
		"jvm": func(t *testing.T) image {
			java := e.temurin(t)
			return image{build: java, run: java, trigger: "TERM", sends: "TERM", code: "0"}
		},
		"php-fpm": func(t *testing.T) image {
			e.fpm(t)
			return image{port: 9000, talk: speakFastCGI, trigger: "QUIT", sends: "QUIT", code: "0"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := prepare(t)
			if i.context == "" {
				i.context = examples + "/" + name
				i.dockerfile = i.context + "/Dockerfile"
			}
			if i.talk == nil {
				i.port, i.talk = 8080, speakHTTP
			}
			e.build(t, name+":test", i.dockerfile, i.context, i.build...)
			t.Run("lameduck", func(t *testing.T) { t.Parallel(); e.drains(t, name+":test", i) })
			t.Run("bare", func(t *testing.T) { t.Parallel(); e.drops(t, name+":test", i) })
		})
	}
}

// behind serves the requests that HAProxy passes on.
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

// stopUnderLoad starts a container and stops the container while requests come. The load
// goes on for lag after begins has returned true.
func (e *engine) stopUnderLoad(t *testing.T, i image, begins func(*container, *load) bool, words ...string) (*container, tally) {
	t.Helper()
	c := e.start(t, slices.Concat(i.run, words)...)
	address := fmt.Sprintf("%s:%d", c.address, i.port)
	if err := until(func() (bool, error) {
		if status := c.state("Status"); status != "running" {
			return false, fmt.Errorf("the container is %s", status)
		}
		conn, err := client.Dial(address, time.Now().Add(timeout))
		if err != nil {
			return false, nil
		}
		defer conn.Close()
		return i.talk(conn, false, false) == nil, nil
	}); err != nil {
		t.Fatalf("the container does not serve: %v\n%s", err, c.logs())
	}
	load := press(address, i.talk)
	defer load.close()
	if err := until(load.runs); err != nil {
		t.Fatalf("no load: %v\n%s", err, c.logs())
	}
	done := c.stop(grace)
	if err := until(func() (bool, error) { return begins(c, load), nil }); err != nil {
		t.Fatalf("no sign of a stop: %v\n%s", err, c.logs())
	}
	begun := time.Now()
	time.Sleep(lag) // the balancer's
	requests := count(load.cease(), begun)
	how := <-done
	t.Logf("gone after %.1f s; %v", how.took.Seconds(), requests)
	if how.err != nil || how.killed || how.took >= grace {
		t.Errorf("podman killed the container: %+v", how)
	}
	return c, requests
}

// drains stops the image as built, with the grace period in a variable.
func (e *engine) drains(t *testing.T, name string, i image) {
	holds := func(c *container, _ *load) bool { return strings.Contains(c.logs(), `"trigger":`) }
	c, requests := e.stopUnderLoad(t, i, holds, "-e", fmt.Sprintf("LAMEDUCK_GRACE_PERIOD=%.0f", grace.Seconds()), "-e", "LAMEDUCK_LOG_FORMAT=json", name)
	if requests.failed > 0 || requests.late < enough {
		t.Errorf("%d requests failed; %d came after the stop, want %d", requests.failed, requests.late, enough)
	}
	if code := c.state("ExitCode"); code != i.code {
		t.Errorf("exit code %s, want %s", code, i.code)
	}
	r := c.report()
	sent := r.Sent
	if r.Trigger != i.trigger || r.Ended != "quiet" || r.HeldMS < lag.Milliseconds() || len(sent) != 1 || sent[0].Signal != i.sends {
		t.Errorf("not held until quiet, from %s to %s: %+v\n%s", i.trigger, i.sends, r, c.logs())
	}
}

// report is lameduck's report of a stop in JSON: see docs/report.md.
type report struct {
	Trigger, Ended string
	HeldMS         int64 `json:"held_ms"`
	Sent           []struct{ Signal string }
	Message        string
}

// report returns lameduck's last line.
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

// drops stops the same command, from the same image, as PID 1 without lameduck. The stop
// has begun when a request fails; without a failure drains would prove nothing.
func (e *engine) drops(t *testing.T, name string, i image) {
	fails := func(_ *container, l *load) bool { _, err := l.runs(); return err != nil }
	command := e.config(t, name).Cmd
	e.stopUnderLoad(t, i, fails, append([]string{"--entrypoint", command[0], name}, command[1:]...)...)
}
