package bench

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// crowd is a server with connections.
type crowd struct {
	*net.TCPListener
	made int // connections so far
}

// port returns the port of the server as a word.
func (c *crowd) port() string { return strconv.Itoa(c.Addr().(*net.TCPAddr).Port) }

// grow makes connections up to n, on which a request has been answered. Each client has an address of
// its own. Other processes hold both ends, a few each: they are mostly allowed some thousand
// descriptors, which are doubled while they are passed on.
func (c *crowd) grow(n int) {
	for c.made < n {
		holder := exec.Command("sleep", "1000")
		for range 125 {
			from := &net.TCPAddr{IP: net.IPv4(10, 1, byte(c.made>>8&3), byte(c.made)), Port: 1024 + c.made>>10}
			client := must.Get(net.DialTCP("tcp4", from, c.Addr().(*net.TCPAddr)))
			server := must.Get(c.AcceptTCP())
			c.made++
			say(client, server, 100)
			say(server, client, 200)
			for _, end := range []*net.TCPConn{client, server} {
				holder.ExtraFiles = append(holder.ExtraFiles, must.Get(end.File()))
				end.Close()
			}
		}
		must.Do(holder.Start())
		for _, end := range holder.ExtraFiles {
			end.Close()
		}
	}
}

// say sends n bytes from one end to the other.
func say(from, to *net.TCPConn, n int) {
	text := make([]byte, n)
	must.Get(from.Write(text))
	must.Get(io.ReadFull(to, text))
}

// hold boots a lameduck that holds for the crowd's connections until a second TERM.
func (c *crowd) hold(lameduck string) *box {
	h := contender{ours, []string{lameduck, "--log-format=json", "--until=drained", "--delay=0", "--max-delay=60",
		"--grace-period=90", "--count-port=" + c.port(), "--"}}.open("/bin/sh", "-c", "printf r; exec sleep 1000")
	must.Do(unix.Kill(h.pid, unix.SIGTERM))
	must.Get(bufio.NewReader(h.out).ReadString('\n')) // that it holds
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
	c := &crowd{TCPListener: must.Get(net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}))}
	length := 10 * time.Second / time.Duration(b.less)
	measure := func(connections int) {
		c.grow(connections)
		what := strconv.Itoa(connections)
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
	measure(1000)
	measure(10_000)
	if b.less == 1 {
		measure(50_000)
	}
}
