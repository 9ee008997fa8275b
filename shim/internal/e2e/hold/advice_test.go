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
	"strconv"
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
type advised struct {
	leave   chan bool
	running sync.WaitGroup // streams
}

func serveAdvised(args []string) {
	a := &advised{leave: make(chan bool, 1)}
	server := &http.Server{Handler: a}
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGUSR2)
	if args[0] != "dies" {
		signal.Notify(told, unix.SIGTERM, unix.SIGQUIT)
	}
	if args[0] == "ignores-QUIT" {
		signal.Ignore(unix.SIGQUIT)
	}
	listener := testutil.Must(net.Listen("tcp", "127.0.0.1:8080"))
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
					a.leave <- true
				}
			}()
		case args[0] == "stays":
			listener.Close()
			logs.Close()
		default:
			time.Sleep(map[string]time.Duration{"sleeps": 3 * time.Second, "slow": 5 * time.Second}[args[0]]) // and serves meanwhile
			if args[0] == "serves" {
				server.Shutdown(context.Background())
				a.running.Wait()
				time.Sleep(time.Second) // as Shutdown does with the connections that it knows
			}
			fmt.Println("finished")
			os.Exit(0)
		}
	}
}

// ServeHTTP answers after the time ?for=DUR. For so long, or until leave, /stream sends, from the time &after=DUR on,
// and /open has a silent connection, as after an upgrade.
func (a *advised) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Println("began")
	length, _ := time.ParseDuration(r.URL.Query().Get("for"))
	if r.URL.Path == "/" {
		time.Sleep(length)
		io.WriteString(w, "whole")
		return
	}
	defer a.running.Done()
	a.running.Add(1)
	conn, _, err := http.NewResponseController(w).Hijack()
	box.Die(err)
	io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	after, _ := time.ParseDuration(r.URL.Query().Get("after"))
	time.Sleep(after)
	for end := time.Now().Add(length); time.Now().Before(end); {
		if r.URL.Path == "/stream" {
			io.WriteString(conn, "token\n")
		}
		select {
		case <-a.leave:
			end = time.Time{}
		case <-time.After(160 * time.Millisecond): // a second's end falls between two
		}
	}
	// However busy the machine is, the last byte goes out with the end of the connection.
	tcp := conn.(*net.TCPConn)
	raw, _ := tcp.SyscallConn()
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
	io.WriteString(conn, "whole")
	tcp.CloseWrite()
	io.Copy(io.Discard, conn) // until the client has it
	conn.Close()
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
	atOnce int           // the most requests that ended within a tenth of a second
	took   time.Duration // from TERM to the end of the container
	advice string
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

// one makes a request on a connection of its own, and reports whether it was answered.
func (c *crowd) one(path string) bool {
	conn, err := c.network.Connect("127.0.0.1:8080")
	if err != nil {
		return false
	}
	defer conn.Close()
	return c.ask(conn, bufio.NewReader(conn), path)
}

// count makes a request that is counted.
func (c *crowd) count(path string) {
	if !c.one(path) {
		c.lost.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, time.Now())
}

// pool makes requests on a connection that is kept, until it is closed between two: elsewhere from then on.
func (c *crowd) pool(path string, pause time.Duration) {
	conn, err := c.network.Connect("127.0.0.1:8080")
	if err != nil {
		return
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for err != io.EOF && !c.stopped.Load() {
		conn.SetReadDeadline(time.Time{})
		if !c.ask(conn, in, path) {
			c.lost.Add(1)
			return
		}
		conn.SetReadDeadline(time.Now().Add(pause))
		_, err = in.Peek(1)
	}
}

// start starts clients before TERM: a number of requests for a path, as "/stream?for=8s"; a "pool=N", or a "busy=N"
// one, of connections that are kept; and what is sent to a port for "logs".
func (c *crowd) start(word string) {
	number, path, isRequest := strings.Cut(word, "/")
	kind, size, _ := strings.Cut(number, "=")
	n, _ := strconv.Atoi(cmp.Or(size, number))
	for i := range max(n, 1) {
		apart := time.Duration(i) * 7 * time.Millisecond // they do not come together
		client := map[string]func(){
			"pool": func() { c.pool("/?for=100ms", 400*time.Millisecond+apart) },
			"busy": func() { c.pool("/?for=300ms", 100*time.Millisecond+apart) }, // several are in flight at any time
		}[kind]
		if isRequest {
			client = func() { c.count("/" + path) }
		}
		if client != nil {
			c.running.Go(client)
			c.asked++
		}
	}
	if kind == "logs" {
		if conn, err := c.network.Connect("127.0.0.1:514"); err == nil {
			c.repeat(time.Second, func() { io.WriteString(conn, "a line of a log\n") })
		}
	}
}

// goOn begins what comes from TERM on: "shorts=3s", ten connections a second for so long, or to the end; a
// health "probe" each second; "seldom", one at times. Probes are not counted.
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
				c.count("/")
			}
		})
	case "probe":
		c.repeat(time.Second, func() { c.one("/") })
	case "seldom":
		n := 0
		c.repeat(50*time.Millisecond, func() {
			if n %= 69; n == 0 || n == 17 || n == 40 {
				c.one("/")
			}
			n++
		})
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
	switch place {
	case "behind a shell":
		command = append([]string{"sh", "-c", `"$@" & wait; :`, "sh"}, command...)
	case "gunicorn":
		box.Needs(t, place)
		dir := t.TempDir()
		testutil.WriteFile(t, dir+"/app.py", slowApp)
		command = []string{place, "--chdir=" + dir, "--bind=127.0.0.1:8080", "--threads=2", "--graceful-timeout=" + kind, "app:app"}
	}
	b := box.Setup{Network: c.network}.Boot(t, flags+" --termination-log=none", command...)
	b.Play("ready")
	words := strings.Fields(clients)
	for _, word := range words {
		c.start(word)
	}
	if c.asked > 0 {
		b.Out.WaitNth(c.asked, "began")
	}
	watch, sidecar := slices.Contains(words, "watch"), slices.Contains(words, "sidecar")
	var w *box.Box
	if watch || sidecar {
		w = startWatch(t, c.network, "--json --grace-period=30")
		w.Play("8080]")
	}
	if watch {
		w.Play("TERM / following the stop")
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
	if kind == "slow" && b.Out.Count("finished") == 0 {
		o.lost++
	}
	for i, end := range c.ends {
		first := slices.IndexFunc(c.ends, func(other time.Time) bool { return end.Sub(other) < 100*time.Millisecond })
		o.atOnce = max(o.atOnce, i-first+1)
	}
	_, o.advice, _ = strings.Cut(strings.Join(b.Messages(), "\n"), "suggestion: ")
	o.advice, _, _ = strings.Cut(o.advice, "\n")
	if w != nil {
		o.advice = w.Out.Wait(`"held_would_ms"`).Text
		w.Play("INT / exits")
	}
	return o
}

// advices are a name, flags, a server, its clients, a part of the suggestion, and what follows it: flags
// beside or instead of those before ("=": those of the suggestion), another server, or other clients; then
// what that saves: requests that are lost, connections that end at once, or time.
const advices = `
	streams                | --until=settled                                 | dies                 | /stream?for=5s        | waits for the end                    | =                              | lost
	endless                | --until=quiet --grace-period=9                  | dies                 | 2/stream?for=99s      | do not end, let                      | --on-stop=USR2 --until=drained | lost
	open                   | --until=quiet                                   | dies                 | 40/open?for=99s       | 40 connections ended                 | --on-stop=USR2 --until=drained | atonce
	time                   | --until=quiet --grace-period=9                  | dies                 | /?for=8s              | need more time: a grace              | =                              | lost
	max-delay              | --until=quiet --max-delay=3                     | dies                 | /?for=5s              | need more time: --max                | =                              | lost
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
	caveat                 | --delay=1 --preset=gunicorn                     | gunicorn: 1          | /?for=4s              | requests get graceful                | server gunicorn: 20            | lost
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
				before := play(t, common+c["flags"], c["server"], c["clients"])
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
				after := play(t, common+c["flags"]+" "+flags, server, clients)
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
