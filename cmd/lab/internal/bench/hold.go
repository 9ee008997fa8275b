package bench

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// crowd is a server with connections.
type crowd struct {
	*net.TCPListener
	made int // connections so far
	kept int // open connections
}

func newCrowd() *crowd {
	return &crowd{TCPListener: must.Get(net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}))}
}

// port returns the port of the server as a word.
func (c *crowd) port() string { return strconv.Itoa(c.Addr().(*net.TCPAddr).Port) }

// connect makes a connection on which a request has been answered. Each client has an address of
// its own.
func (c *crowd) connect() (client, server *net.TCPConn) {
	from := &net.TCPAddr{IP: net.IPv4(10, 1, byte(c.made>>8&3), byte(c.made)), Port: 1024 + c.made>>10}
	c.made++
	client = must.Get(net.DialTCP("tcp4", from, c.Addr().(*net.TCPAddr)))
	server = must.Get(c.AcceptTCP())
	say(client, server, 100)
	say(server, client, 200)
	return client, server
}

// say sends n bytes from one end to the other.
func say(from, to *net.TCPConn, n int) {
	text := make([]byte, n)
	must.Get(from.Write(text))
	must.Get(io.ReadFull(to, text))
}

// armful is the number of connections that a process holds: both ends need fewer than the
// descriptors that it is mostly allowed, even while they are passed on.
const armful = 125

// grow keeps n connections open, whose ends other processes hold.
func (c *crowd) grow(n int) {
	for c.kept < n {
		holder := exec.Command("sleep", "1000")
		for range armful {
			client, server := c.connect()
			for _, end := range []*net.TCPConn{client, server} {
				holder.ExtraFiles = append(holder.ExtraFiles, must.Get(end.File()))
				end.Close()
			}
		}
		must.Do(holder.Start())
		for _, end := range holder.ExtraFiles {
			end.Close()
		}
		c.kept += armful
	}
}

// hold boots a lameduck that holds for the crowd's connections until a second TERM.
func (c *crowd) hold(lameduck string) *box {
	h := contender{ours, []string{lameduck, "--log-format=json", "--until=drained", "--delay=0", "--max-delay=60",
		"--grace-period=90", "--count-port=" + c.port(), "--"}}.open("/bin/sh", "-c", "printf r; exec sleep 1000")
	h.stop()
	return h
}

// perTenSeconds is the number of samples in ten seconds of a hold by default.
const perTenSeconds = 40

// holds measures the processor time of holds with more and more connections, scaled to ten seconds,
// beside ss(8), which prints the same facts (-tni, with a filter for the kernel), run once for each
// sample. All of 10.0.0.0/8 is local: the addresses are not taken for a container's connections to
// itself, and have ports enough for any number of clients.
func (b *bench) holds(lameduck string) {
	must.Do(exec.Command("ip", "address", "add", "10.0.0.1/8", "dev", "lo").Run())
	c := newCrowd()
	length := b.length(10 * time.Second)
	measure := func(what figure, connections int) {
		c.grow(connections)
		turns(b, 5, []string{ss, ours}, func(name string) {
			if name == ours {
				h := c.hold(lameduck)
				defer h.close()
				before := h.cpu()
				time.Sleep(length)
				b.add(what, name, micro(h.cpu()-before)/1000*10/length.Seconds())
				return
			}
			cmd := exec.Command(ss, "-Htni", "sport = :"+c.port())
			must.Do(cmd.Run())
			b.add(what, name, micro(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())/1000*perTenSeconds)
		})
	}
	measure(hold1, 1000)
	measure(hold10, 10_000)
	if b.less == 1 {
		measure(hold50, 50_000)
	}
	b.rush(lameduck)
}

// A rush is rushRate short connections a second, in rushParts bursts.
const (
	rushRate   = 10_000
	rushParts  = 100
	rushLength = 5 * time.Second
)

var newConnections = regexp.MustCompile(`(at least )?(\d+) new connections`)

// rush counts the short connections that are missing from the report of a hold. A report
// that says "at least" misses none.
func (b *bench) rush(lameduck string) {
	c := newCrowd()
	h := c.hold(lameduck)
	defer h.close()
	time.Sleep(settle) // the first samples come after the trigger
	start := time.Now()
	for next := start; time.Since(start) < rushLength; {
		for range rushRate / rushParts {
			client, server := c.connect()
			client.Close()
			server.Close()
		}
		next = next.Add(time.Second / rushParts)
		time.Sleep(time.Until(next))
	}
	rate := float64(c.made) / time.Since(start).Seconds()
	time.Sleep(time.Second) // for one more sample; and a TERM earlier would count as a double
	report := h.stop()
	found := newConnections.FindStringSubmatch(report)
	must.Be(found != nil, "the report has no new connections: %s", report)
	counted := must.Get(strconv.Atoi(found[2]))
	if found[1] != "" {
		counted = max(counted, c.made)
	}
	b.add(unseen, ours, float64(c.made-counted))
	fmt.Fprintf(b.out, "%d short connections, %.0f a second: the report has %s\n", c.made, rate, found[0])
}
