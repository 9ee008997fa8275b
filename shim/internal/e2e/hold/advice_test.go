package hold_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// advised is a server for TestAdvice. It says "began" of each request. At TERM it "dies", or does as the
// word says; at USR2 it ends its streams and other long connections, one after the other.
func advised(args []string) {
	leave := make(chan struct{}, 1)
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("began")
		serveAdvised(w, r, leave)
	})}
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGUSR2)
	if args[0] != "dies" {
		signal.Notify(told, unix.SIGTERM, unix.SIGQUIT)
	}
	if args[0] == "ignores-QUIT" {
		signal.Ignore(unix.SIGQUIT)
	}
	listener := testutil.Must(net.Listen("tcp", server.Addr))
	logs := testutil.Must(net.Listen("tcp", "127.0.0.1:514"))
	go server.Serve(listener)
	go func() {
		for conn, err := logs.Accept(); err == nil; conn, err = logs.Accept() {
			go io.Copy(io.Discard, conn)
		}
	}()
	fmt.Println("ready")
	for s := range told {
		switch {
		case s == unix.SIGUSR2:
			go func() {
				for range time.Tick(50 * time.Millisecond) {
					leave <- struct{}{}
				}
			}()
		case args[0] == "stays":
			listener.Close()
			logs.Close()
		case args[0] == "sleeps": // and serves meanwhile
			time.Sleep(3 * time.Second)
			os.Exit(0)
		case args[0] == "slow":
			time.Sleep(5 * time.Second)
			fmt.Println("finished")
			os.Exit(0)
		default:
			server.Shutdown(context.Background())
			os.Exit(0)
		}
	}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// serveAdvised answers after the time ?for=DUR, or /stream for so long, or has a connection /open until leave.
func serveAdvised(w http.ResponseWriter, r *http.Request, leave chan struct{}) {
	length, _ := time.ParseDuration(r.URL.Query().Get("for"))
	switch r.URL.Path {
	case "/stream":
		w.Header().Set("Connection", "close")
		left := false
		for end := time.Now().Add(length); time.Now().Before(end) && !left; {
			io.WriteString(w, "token\n")
			http.NewResponseController(w).Flush()
			select {
			case <-leave:
				left = true
			case <-time.After(160 * time.Millisecond): // a second's end falls between two
			}
		}
		// However busy the machine is, the last byte goes out with the end of the connection.
		raw, _ := r.Context().Value(connKey{}).(*net.TCPConn).SyscallConn()
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
	case "/open": // as after an upgrade
		conn, _, err := http.NewResponseController(w).Hijack()
		box.Die(err)
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		<-leave
		conn.Close()
		return
	default:
		time.Sleep(length)
	}
	io.WriteString(w, "whole")
}

// slowApp is as advised, for gunicorn.
const slowApp = `
import time
print("ready", flush=True)
def app(env, start):
    print("began", flush=True)
    time.sleep(4)
    start("200 OK", [("Content-Length", "5")])
    return [b"whole"]
`

// outcome is what a stop has cost.
type outcome struct {
	lost   int           // requests
	atOnce int           // the most long connections that ended within a tenth of a second
	took   time.Duration // from TERM to the end of the container
	advice string
	report string
}

// crowd is the clients of a stop.
type crowd struct {
	network  *box.Network
	asked    int
	stopped  atomic.Bool // what has come so far is the last
	lost     atomic.Int32
	running  sync.WaitGroup
	repeated []func() // end what is repeated
	mu       sync.Mutex
	ends     []time.Time
}

// ask sends a request, and reports whether the whole answer came. A server that closes a kept connection
// before an answer began has lost the request only if it is not new.
func (c *crowd) ask(conn net.Conn, in *bufio.Reader, path string) bool {
	const agent = "a client whose requests are as long as those of others"
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\n\r\n", path, agent)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(response.Body)
	return err == nil && strings.HasSuffix(string(body), "whole")
}

// one makes a request on a connection of its own.
func (c *crowd) one(path string) {
	conn, err := c.network.Connect("127.0.0.1:8080")
	if err == nil {
		defer conn.Close()
	}
	if err != nil || !c.ask(conn, bufio.NewReader(conn), path) {
		c.lost.Add(1)
	}
}

// start starts clients before TERM: "slow=8s" and "stream=8s" requests, a "pool=N", or a "busy=N" one, of
// connections that are kept, "open=N" that live long, and what is sent to a port for "logs".
func (c *crowd) start(word string) {
	kind, value, _ := strings.Cut(word, "=")
	n := 1
	fmt.Sscan(value, &n)
	client := func(what func()) {
		c.running.Go(what)
		c.asked++
	}
	switch kind {
	case "slow":
		client(func() { c.one("/?for=" + value) })
	case "stream":
		client(func() { c.one("/stream?for=" + value) })
	case "open":
		for range n {
			client(func() {
				conn, err := c.network.Connect("127.0.0.1:8080")
				if err != nil {
					return
				}
				fmt.Fprint(conn, "GET /open HTTP/1.1\r\nHost: x\r\n\r\n")
				io.Copy(io.Discard, conn)
				conn.Close()
				c.mu.Lock()
				c.ends = append(c.ends, time.Now())
				c.mu.Unlock()
			})
		}
	case "pool", "busy":
		path, pause := "/?for=100ms", 400*time.Millisecond
		if kind == "busy" { // several requests are in flight at any time
			path, pause = "/?for=300ms", 100*time.Millisecond
		}
		for i := range n {
			client(func() {
				conn, err := c.network.Connect("127.0.0.1:8080")
				if err != nil {
					return
				}
				defer conn.Close()
				pause := pause + time.Duration(i)*7*time.Millisecond // they do not come together
				in := bufio.NewReader(conn)
				for !c.stopped.Load() {
					if !c.ask(conn, in, path) {
						c.lost.Add(1)
						return
					}
					conn.SetReadDeadline(time.Now().Add(pause))
					if _, err := in.Peek(1); err == io.EOF { // closed between two requests: elsewhere from now on
						return
					}
					conn.SetReadDeadline(time.Time{})
				}
			})
		}
	case "logs":
		conn, err := c.network.Connect("127.0.0.1:514")
		if err != nil {
			return
		}
		c.repeat(time.Second, func() { io.WriteString(conn, "a line of a log\n") })
	}
}

// goOn begins what comes from TERM on: "shorts=3s", ten connections a second for so long, or to the end; a
// health "probe" each second; "seldom", one at times.
func (c *crowd) goOn(word string) {
	kind, value, _ := strings.Cut(word, "=")
	length, _ := time.ParseDuration(value)
	switch kind {
	case "shorts":
		end := time.Now().Add(length)
		c.running.Go(func() { // those of a length go on after the server
			for now := range time.Tick(100 * time.Millisecond) {
				if length > 0 && now.After(end) || length == 0 && c.stopped.Load() {
					return
				}
				c.one("/")
			}
		})
	case "probe":
		c.repeat(time.Second, c.probe)
	case "seldom":
		n := 0
		c.repeat(50*time.Millisecond, func() {
			if n %= 69; n == 0 || n == 17 || n == 40 {
				c.probe()
			}
			n++
		})
	}
}

// probe makes a request that is not counted.
func (c *crowd) probe() {
	if conn, err := c.network.Connect("127.0.0.1:8080"); err == nil {
		c.ask(conn, bufio.NewReader(conn), "/")
		conn.Close()
	}
}

// repeat does something at an interval until the crowd is stopped.
func (c *crowd) repeat(every time.Duration, what func()) {
	c.repeated = append(c.repeated, box.Repeat(every, what))
}

// stop lets the crowd finish what it does, and begin nothing.
func (c *crowd) stop() {
	c.stopped.Store(true)
	for _, end := range c.repeated {
		end()
	}
	c.running.Wait()
}

// play stops a server as a row says, and counts.
func play(t *testing.T, flags, server, clients string) (o outcome) {
	c := &crowd{network: box.NewNetwork(t)}
	place, kind, _ := strings.Cut(server, ": ")
	command := box.Helper("advised", cmp.Or(kind, place))
	if place == "behind a shell" {
		command = append([]string{"/bin/sh", "-c", `"$@" & wait; :`, "sh"}, command...)
	}
	if place == "gunicorn" {
		box.Needs(t, place)
		dir := t.TempDir()
		testutil.WriteFile(t, dir+"/app.py", slowApp)
		command = []string{place, "--chdir=" + dir, "--bind=127.0.0.1:8080", "--threads=2", "--graceful-timeout=" + kind, "app:app"}
	}
	setup := box.Setup{Network: c.network}
	if place == "in a unit" {
		setup.Env = []string{"INVOCATION_ID=1"}
	}
	b := setup.Boot(t, flags+" --termination-log=none", command...)
	b.Out.Wait("ready")
	words := strings.Fields(clients)
	for _, word := range words {
		c.start(word)
	}
	if c.asked > 0 {
		b.Out.WaitNth(c.asked, "began")
	}
	var w *box.Box
	if slices.Contains(words, "watch") || slices.Contains(words, "sidecar") {
		w = startWatch(t, c.network, "--json --grace-period=30")
		w.Out.Wait("8080]")
	}
	if slices.Contains(words, "watch") {
		w.Signal(sig.TERM)
		w.Out.Wait("following the stop")
	}
	began := b.Stop()
	if slices.Contains(words, "everybody") {
		for _, pid := range box.Children(b.Pid()) {
			unix.Kill(pid, unix.SIGTERM)
		}
	}
	for _, word := range words {
		c.goOn(word)
	}
	if server == "stays" || server == "ignores-QUIT" { // KILL ends it, as an orchestrator's
		killed := time.AfterFunc(12*time.Second, func() { b.Signal(sig.KILL) })
		defer killed.Stop()
	}
	b.WaitExit()
	o.took = time.Since(began)
	c.stop()
	o.lost = int(c.lost.Load())
	if strings.HasSuffix(server, "slow") && !slices.Contains(b.Out.Texts(), "finished") {
		o.lost++
	}
	for i, end := range c.ends {
		n := 0
		for _, other := range c.ends[:i+1] {
			if end.Sub(other) < 100*time.Millisecond {
				n++
			}
		}
		o.atOnce = max(o.atOnce, n)
	}
	for _, r := range b.Reports() {
		o.report = r.Message
		_, text, found := strings.Cut(r.Message, "suggestion: ")
		if found {
			o.advice = text
		}
	}
	if w != nil {
		verdict := w.Out.Wait(`"held_would_ms"`)
		w.Signal(sig.INT)
		w.WaitExit()
		o.advice = verdict.Text
	}
	return o
}

// advices are a name, flags, a server, its clients, a part of the suggestion, and what follows it: flags
// beside or instead of those before ("=": those of the suggestion), another server, or other clients; then
// what that saves: requests that are lost, connections that end at once, or time.
const advices = `
	streams                | --until=settled                                 | dies                 | stream=5s             | waits for the end                    | =                              | lost
	endless                | --until=quiet --grace-period=9                  | dies                 | stream=99s stream=99s | do not end, let                      | --on-stop=USR2 --until=drained | lost
	open                   | --until=quiet                                   | dies                 | open=40               | 40 connections ended                 | --on-stop=USR2 --until=drained | atonce
	time                   | --until=quiet --grace-period=9                  | dies                 | slow=8s               | need more time: a grace              | =                              | lost
	max-delay              | --until=quiet --max-delay=3                     | dies                 | slow=5s               | need more time: --max                | =                              | lost
	delay                  | --delay=1                                       | dies                 | shorts=3s             | too short, see                       | --delay=0 --until=quiet        | lost
	long delay             | --delay=8                                       | dies                 | shorts=1500ms         | a fixed delay needs                  | =                              | time
	delay, settles         | --delay=3 --preset=nginx                        | serves               | pool=3                | closes kept                          | --delay=0 --until=settled      | time
	kept                   | --until=quiet --preset=go --grace-period=40     | dies                 | pool=24               | closes them, unless                  | --close-idle                   | time
	kept, settles          | --until=quiet                                   | serves               | pool=3                | is enough if the                     | --until=settled                | time
	unanswered             | --until=quiet --grace-period=15 --quiet-for=2   | dies                 | logs                  | needs no drain                       | --ignore-port=514              | time
	probes                 | --until=quiet --grace-period=30 --quiet-for=2   | dies                 | probe                 | leaves health probes                 | --ignore-probes                | time
	loopback               | --until=quiet --grace-period=15 --quiet-for=1.2 | dies                 | seldom                | over loopback?                       | --ignore-peer=127.0.0.1        | time
	steady                 | --until=quiet --grace-period=15 --quiet-for=3   | dies                 | shorts                | kept their rate                      | clients shorts=1s              | time
	stays                  | --delay=1 --grace-period=12                     | stays                |                       | had no connection                    | =                              | time
	preset                 | --preset=nginx --grace-period=9                 | ignores-QUIT         |                       | meant for it                         | --preset=go                    | time
	workers                | --delay=1 --grace-period=5                      | behind a shell: slow |                       | a longer grace period                | --grace-period=20              | lost
	others                 | --until=quiet                                   | dies                 | everybody shorts=2s   | from somebody else                   | clients shorts=2s              | lost
	others, a unit         | --until=quiet                                   | in a unit: dies      | everybody shorts=2s   | set KillMode=mixed                   | clients shorts=2s              | lost
	caveat                 | --delay=1 --preset=gunicorn                     | gunicorn: 1          | slow=4s               | requests get graceful                | server gunicorn: 20            | lost
	watch, a delay         |                                                 | dies                 | shorts=3s watch       | s; a fixed delay needs               | =                              | lost
	watch, a hold          |                                                 | dies                 | shorts=3s watch       | a hold until quiet would have lasted | --until=quiet                  | lost
	watch, longer          | --delay=1                                       | dies                 | shorts=3s sidecar     | s more than it waits now             | =                              | lost
	watch, kept            |                                                 | sleeps               | busy=24 watch         | see --close-idle                     | --until=quiet --close-idle     | lost
	watch, kept, a sidecar |                                                 | sleeps               | busy=24 sidecar       | see --close-idle                     | --until=quiet --close-idle     | lost
`

// TestAdvice: each suggestion appears in a stop that it is for, and is followed: it saves what it is to save,
// and loses nothing.
func TestAdvice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var given []string
	rows := box.Table("name | flags | server | clients | says | follow | saves\n" + advices)
	t.Run("rows", func(t *testing.T) {
		for _, c := range rows {
			t.Run(c["name"], func(t *testing.T) {
				t.Parallel()
				common := "--log-format=json --grace-period=30 "
				if strings.Contains(c["flags"], "--until") {
					common += "--quiet-for=1 "
				}
				before := play(t, override(common, c["flags"]), c["server"], c["clients"])
				if !strings.Contains(before.advice, c["says"]) {
					t.Fatalf("the advice is %q, want %q; %+v", before.advice, c["says"], before)
				}
				mu.Lock()
				given = append(given, before.advice)
				mu.Unlock()
				flags, server, clients := c["follow"], c["server"], c["clients"]
				switch what, other, _ := strings.Cut(flags, " "); what {
				case "clients":
					flags, clients = "", other
				case "server":
					flags, server = "", other
				case "=":
					flags = flagsOf(before.advice, c["flags"])
				}
				if strings.Contains(flags, "--until") {
					common += "--quiet-for=1 "
				}
				after := play(t, override(override(common, c["flags"]), flags), server, clients)
				saves := map[string]bool{
					"lost": before.lost > 0, "atonce": after.atOnce*4 < before.atOnce, "time": after.took < before.took-time.Second/2,
				}
				isRepeated := after.advice == before.advice && c["name"] != "caveat" // which is given if there are requests
				race := 0
				if server == "serves" || strings.Contains(flags, "--close-idle") { // a request is on its way to what is closed
					race = 1
				}
				if !saves[c["saves"]] || after.lost > race || isRepeated {
					t.Errorf("before: %+v\nafter %s: %+v", before, flags, after)
				}
			})
		}
	})
	if len(given) == len(rows) {
		wantEachGiven(t, given)
	}
}

// override adds flags, in place of those of the same names.
func override(flags, others string) string {
	name := func(flag string) string { name, _, _ := strings.Cut(flag, "="); return name }
	kept := slices.DeleteFunc(strings.Fields(flags), func(flag string) bool {
		return slices.ContainsFunc(strings.Fields(others), func(other string) bool { return name(other) == name(flag) })
	})
	all := slices.DeleteFunc(append(kept, strings.Fields(others)...), func(flag string) bool { return flag == "--delay=0" })
	return strings.Join(all, " ")
}

// flagsOf returns the flags of a suggestion that says how long something must be, to a stop with some flags.
func flagsOf(advice, flags string) string {
	if found := regexp.MustCompile(`grace period of at least (\d+) s`).FindStringSubmatch(advice); found != nil {
		return "--grace-period=" + found[1]
	}
	if found := regexp.MustCompile(`a fixed delay needs (\d+) s( more)?`).FindStringSubmatch(advice); found != nil {
		seconds, before := 0, 0
		fmt.Sscan(found[1], &seconds)
		if found[2] != "" {
			fmt.Sscanf(flags, "--delay=%d", &before)
		}
		return fmt.Sprintf("--delay=%d", before+seconds)
	}
	return regexp.MustCompile(`--[a-z-]+=\w+`).FindString(advice)
}

// elsewhere are suggestions that other tests follow: TestHoldStops, and TestTold of package e2e/init.
var elsewhere = []string{
	"PID 1 (sh) ignores TERM: the stop ends by KILL, 9 s from now; --preset=auto (LAMEDUCK_PRESET) tells the server below it",
	"nobody has told node (pid 12) to end: --group (LAMEDUCK_GROUP) tells them, too",
}

// wantEachGiven wants a row for each sentence of the list of suggestions.
func wantEachGiven(t *testing.T, given []string) {
	source := string(testutil.Must(os.ReadFile(testutil.Path("shim/internal/report/suggestion.go"))))
	source = regexp.MustCompile("(?m)//.*$").ReplaceAllString(source, "")
	source = strings.ReplaceAll(source, "\" +\n", "\"")
	all := strings.Join(slices.Concat(given, elsewhere), "\n")
	n := 0
	for _, literal := range regexp.MustCompile(`"([^"\n]* [^"\n]*)"`).FindAllStringSubmatch(source, -1) {
		n++
		shown := regexp.MustCompile(`%(\\\.0)?[dfsv]`).ReplaceAllString(regexp.QuoteMeta(literal[1]), ".+")
		if !regexp.MustCompile(shown).MatchString(all) {
			t.Errorf("no row gives %q", literal[1])
		}
	}
	if n < 15 {
		t.Errorf("%d suggestions", n)
	}
}
