package shim

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// What waits for traffic is told of all that goes on in its network namespace:
// these tests have one each, in which they start containers, and to which the
// clients in the test itself connect.

// place is a network namespace, with loopback.
type place struct {
	t      *testing.T
	fd, us int // it, and the one of the other tests
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if noNamespaces != "" {
		t.Skip("no namespaces: ", noNamespaces)
	}
	runtime.LockOSThread() // stays so if something fails: the thread ends with us
	p := &place{t: t, us: netnsOfThread(t)}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal("network namespace: ", err)
	}
	p.fd = netnsOfThread(t)
	if err := loopbackUp(); err != nil {
		t.Fatal("loopback: ", err)
	}
	if err := unix.Setns(p.us, unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	runtime.UnlockOSThread()
	t.Cleanup(func() { unix.Close(p.fd); unix.Close(p.us) })
	return p
}

func netnsOfThread(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// do does something there: sockets and processes stay where they were made.
func (p *place) do(what func()) {
	runtime.LockOSThread()
	if err := unix.Setns(p.fd, unix.CLONE_NEWNET); err != nil {
		panic(err)
	}
	defer func() {
		if unix.Setns(p.us, unix.CLONE_NEWNET) == nil { // else the thread ends with us
			runtime.UnlockOSThread()
		}
	}()
	what()
}

func (p *place) run(b *box) { p.do(b.run) }

// connect is net.Dial from there.
func (p *place) connect(address string) (conn net.Conn, err error) {
	return p.connectFrom(nil, address)
}

func (p *place) connectFrom(from net.IP, address string) (conn net.Conn, err error) {
	var d net.Dialer
	if from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	p.do(func() { conn, err = d.Dial("tcp", address) })
	return conn, err
}

func (p *place) dial(address string) *client {
	p.t.Helper()
	conn, err := p.connect(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return &client{conn, p.t, bufio.NewScanner(conn)}
}

// listen is net.Listen there; everything is read, each line is answered.
func (p *place) listen() (address string) {
	p.t.Helper()
	var l net.Listener
	var err error
	if p.do(func() { l, err = net.Listen("tcp", "127.0.0.1:0") }); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	go answer(l)
	return l.Addr().String()
}

// transport is one whose connections come from there.
func (p *place) transport() *http.Transport {
	tr := &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return p.connect(address) },
	}
	p.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// oneRequest is a transport that keeps no connection.
func (p *place) oneRequest() *http.Transport {
	tr := p.transport()
	tr.DisableKeepAlives = true
	return tr
}

// begin starts a container of the place, with its own processes and mounts.
func (p *place) begin(what string, words ...string) *app {
	p.t.Helper()
	a := &app{&served{box: piped(p.t, nil, asPID1, self(what, words...)...)}, p}
	p.run(a.box)
	a.out.wait(p.t, "ready")
	if first := a.out.all()[0].text; strings.HasPrefix(first, "port ") {
		a.port = strings.TrimPrefix(first, "port ")
	}
	return a
}

// app is a server, or at least a program, in a place.
type app struct {
	*served
	place *place
}

// brisk are flags that make all of it quicker still.
var brisk = []string{"--delay=0", "--quiet-for=1", "--grace-period=30"}

const instant = time.Second // the silence of brisk

// holding starts the program of words under lameduck, by way of a stage.
func (p *place) holding(stage, until string, flags []string, words ...string) *app {
	p.t.Helper()
	if strings.Contains(stage, "uid=") && !isRoot() {
		p.t.Skip("only root can become somebody else")
	}
	if _, err := os.Stat(binary); err != nil {
		p.t.Fatalf("%v: make build first", err)
	}
	call := append([]string{binary, "--until=" + until}, append(flags, "--")...)
	return p.begin(stage, append(call, words...)...)
}

// stages are who lameduck and its command may be, for the cases that matter most.
var stages = map[string]string{"root": "stage", "nobody": "stage:uid=65534"}

func (a *app) at(host string) string { return net.JoinHostPort(host, a.port) }

func (a *app) dial(host string) *client {
	a.t.Helper()
	return a.place.dial(a.at(host))
}

// short is a connection with one request.
func (a *app) short(host string) {
	a.t.Helper()
	c := a.dial(host)
	c.asks("hello")
	c.Close()
}

// does has the program do something, and waits until it has.
func (a *app) does(command string) {
	a.t.Helper()
	a.tell(command)
	a.out.wait(a.t, "did "+command)
}

// stops sends TERM, and waits until the hold has begun.
func (a *app) stops() (at time.Time) {
	a.t.Helper()
	at = time.Now()
	a.signal(sig.TERM)
	a.err.wait(a.t, "until ")
	return at
}

// looks waits until the ports have been taken and the traffic is listened to: a
// sock_diag socket that is in a group.
func (a *app) looks() {
	a.t.Helper()
	eventually(a.t, "it hears events", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/netlink", a.cmd.Process.Pid))
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sk, Eth, Pid, Groups
			if len(f) > 3 && f[1] == "4" && f[3] != "00000000" {
				return true
			}
		}
		return false
	})
}

// still wants the hold to go on.
func (a *app) still(what string) {
	a.t.Helper()
	for _, line := range a.out.all() {
		if line.text == "got TERM" {
			a.t.Errorf("the hold has ended: %s", what)
		}
	}
}

// reports wants the line at the end to have these words.
func (a *app) reports(words ...string) {
	a.t.Helper()
	said := a.err.all()
	for _, want := range words {
		if last := said[len(said)-1].text; !strings.Contains(last, want) {
			a.t.Errorf("the report says %q, want %q", last, want)
		}
	}
}

// warnings are the lines that are neither the trigger's nor the report.
func (a *app) warnings() (list []string) {
	for _, line := range a.err.all() {
		if !strings.HasPrefix(line.text, "lameduck: TERM: ") {
			list = append(list, line.text)
		}
	}
	return list
}

// steadily does something again and again, until told to end; that waits.
func steadily(every time.Duration, what func()) (end func()) {
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				what()
			}
		}
	})
	return sync.OnceFunc(func() { close(over); done.Wait() })
}
