package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// untilHelper is the programs whose traffic is waited for.
func untilHelper(name string, args []string) {
	switch name {
	case "app":
		newActor().serveLines(args...)
	case "probing":
		newActor().serveWithKeepAlive(args[0])
	case "few":
		newActor().serveFew(args[0], args[1])
	case "one":
		newActor().serveOneByOne(args[0])
	case "inherited":
		newActor().serveInherited()
	case "web":
		newActor().serveWeb(args[0], args[1])
	case "proxy":
		newActor().proxy(args[0], args[1])
	case "as": // another user, whose descriptors root without capabilities may not see
		id, err := strconv.Atoi(args[0])
		die(err)
		die(syscall.Setgroups(nil))
		die(syscall.Setresgid(id, id, id))
		die(syscall.Setresuid(id, id, id))
		die(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
		helper(args[1], args[2:])
	}
}

// actor does what it is told, and says so, and when it gets TERM.
type appHelper struct {
	listeners []net.Listener
	conns     []net.Conn
	shutdown  func() // on TERM
}

func newActor() *appHelper { return &appHelper{} }

func (h *appHelper) listen(address string) net.Listener {
	l, err := net.Listen("tcp", address)
	die(err)
	if len(h.listeners) == 0 {
		_, port, _ := net.SplitHostPort(l.Addr().String())
		fmt.Println("port", port)
	}
	h.listeners = append(h.listeners, l)
	return l
}

// lines answers each line, at each address; those that begin with a network are
// not of TCP.
func (h *appHelper) serveLines(addresses ...string) {
	for _, address := range addresses {
		switch network, path, _ := strings.Cut(address, " "); network {
		case "unix":
			go answer(testutil.Must(net.Listen("unix", path)))
		case "udp":
			testutil.Must(net.ListenPacket("udp", path))
		default:
			go answer(h.listen(address))
		}
	}
	h.runCommands()
}

// probing probes its clients every second, and has the kernel acknowledge nothing at
// once, as HAProxy does.
func (h *appHelper) serveWithKeepAlive(address string) {
	l := testutil.Must((&net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: time.Second, Interval: time.Second,
	}}).Listen(context.Background(), "tcp", address))
	_, port, _ := net.SplitHostPort(l.Addr().String())
	fmt.Println("port", port)
	go func() {
		for {
			conn := testutil.Must(l.Accept())
			raw := testutil.Must(conn.(*net.TCPConn).SyscallConn())
			raw.Control(func(fd uintptr) { die(unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0)) })
			go converse(conn)
		}
	}()
	h.runCommands()
}

// few answers so many connections, and accepts no more.
func (h *appHelper) serveFew(number, address string) {
	n, err := strconv.Atoi(number)
	die(err)
	l := h.listen(address)
	raw := testutil.Must(l.(*net.TCPListener).SyscallConn())
	die(raw.Control(func(fd uintptr) { die(unix.Listen(int(fd), 2)) })) // as few may wait
	go func() {
		for range n {
			go converse(testutil.Must(l.Accept()))
		}
	}()
	h.runCommands()
}

// one serves one client after the other, and so the rest wait in the queue.
func (h *appHelper) serveOneByOne(address string) {
	l := h.listen(address)
	go func() {
		for {
			converse(testutil.Must(l.Accept()))
		}
	}()
	h.runCommands()
}

// inherited has its listener from whoever started us.
func (h *appHelper) serveInherited() {
	l, err := net.FileListener(os.NewFile(3, "listener"))
	die(err)
	go answer(l)
	h.runCommands()
}

// answer answers each line: "slow" ones after 3 s, those that begin with "-" not
// at all, and after "bye" it closes, after "leak" it never does.
func answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go converse(conn)
	}
}

func converse(conn net.Conn) {
	defer func() { conn.Close() }()
	for in := bufio.NewScanner(conn); in.Scan(); {
		switch line := in.Text(); {
		case line == "slow":
			time.Sleep(3 * time.Second)
			fmt.Fprintln(conn, "ok")
		case line == "leak":
			conn = unclosedConn{conn}
		case line == "bye":
			fmt.Fprintln(conn, "ok")
			return
		case !strings.HasPrefix(line, "-"):
			fmt.Fprintln(conn, "ok")
		}
	}
}

// leaked is a connection that is forgotten.
type unclosedConn struct{ net.Conn }

func (unclosedConn) Close() error { return nil }

// proxy passes on what its clients say. Its own connections outlast theirs.
func (h *appHelper) proxy(address, upstream string) {
	l := h.listen(address)
	go func() {
		for {
			client, err := l.Accept()
			die(err)
			server, err := net.Dial("tcp", upstream)
			die(err)
			go func() { io.Copy(server, client); client.Close() }()
			go io.Copy(client, server)
		}
	}()
	h.runCommands()
}

func (h *appHelper) runCommands() {
	got := make(chan os.Signal, 10)
	signal.Notify(got, syscall.SIGTERM)
	commands := make(chan string)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			commands <- in.Text()
		}
		os.Exit(98) // whoever gave the commands is gone
	}()
	fmt.Println("ready")
	for {
		select {
		case <-got:
			fmt.Println("got TERM")
			if h.shutdown != nil {
				h.shutdown()
			}
		case c := <-commands:
			h.runCommand(c)
			fmt.Println("did", c)
		}
	}
}

func (h *appHelper) runCommand(command string) {
	word, arg, _ := strings.Cut(command, " ")
	switch word {
	case "close": // listens no more
		for _, l := range h.listeners {
			die(l.Close())
		}
	case "open": // a connection that is kept
		h.conns = append(h.conns, h.openConn(arg))
	case "short":
		h.openConn(arg).Close()
	case "shut":
		for _, conn := range h.conns {
			conn.Close()
		}
	case "call": // short connections without end, and one that talks
		kept := h.openConn(arg)
		go func() {
			for in := bufio.NewScanner(kept); ; time.Sleep(50 * time.Millisecond) {
				fmt.Fprintln(kept, "hello")
				in.Scan()
				h.openConn(arg).Close()
			}
		}()
	case "talk": // that one alone
		kept := h.openConn(arg)
		go func() {
			for in := bufio.NewScanner(kept); ; time.Sleep(50 * time.Millisecond) {
				fmt.Fprintln(kept, "hello")
				in.Scan()
			}
		}()
	default:
		obey(command)
	}
}

func (h *appHelper) openConn(address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	die(err)
	fmt.Fprintln(conn, "hello")
	bufio.NewScanner(conn).Scan()
	return conn
}
