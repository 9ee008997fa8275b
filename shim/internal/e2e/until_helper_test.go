package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// untilHelper runs the helper programs for tests with traffic.
func untilHelper(name string, args []string) {
	h := new(appHelper)
	switch name {
	case "app":
		h.serveLines(args...)
	case "probing":
		h.serveWithKeepAlive(args[0])
	case "few":
		h.serveFew(args[0], args[1])
	case "one":
		h.serveOneByOne(args[0])
	case "gated":
		h.serveGated(args[0])
	case "inherited":
		h.serveInherited()
	case "web":
		h.serveWeb(args[0], args[1])
	case "proxy":
		h.proxy(args[0], args[1])
	case "as": // a helper as another user, whose descriptors root without capabilities cannot read
		id, err := strconv.Atoi(args[0])
		die(err)
		die(syscall.Setgroups(nil))
		die(syscall.Setresgid(id, id, id))
		die(syscall.Setresuid(id, id, id))
		die(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
		helper(args[1], args[2:])
	}
}

// appHelper is a program with commands on standard input. The program prints "did COMMAND"
// after each and "got TERM" on TERM.
type appHelper struct {
	listeners []net.Listener
	conns     []net.Conn
	shutdown  func()        // called on TERM, if set
	replies   chan struct{} // of serveGated
}

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

// serveLines replies to lines at every address: of TCP, or of another network if the address
// begins with its name and a blank; see keepSocket.
func (h *appHelper) serveLines(addresses ...string) {
	for _, address := range addresses {
		switch network, path, _ := strings.Cut(address, " "); network {
		case "unix":
			go answer(testutil.Must(net.Listen("unix", path)))
		case address:
			go answer(h.listen(address))
		default:
			keepSocket(network, path)
		}
	}
	h.runCommands()
}

// keepSocket keeps a socket of a kind whose traffic lameduck cannot observe, and does not
// answer; "elsewhere" is a server in another network namespace, "client" has sockets that
// serve nobody.
func keepSocket(kind, address string) {
	switch kind {
	case "udp":
		testutil.Must(net.ListenPacket("udp", address))
	case "vsock":
		fd := testutil.Must(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0))
		die(unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: 5000}))
		die(unix.Listen(fd, 1))
	case "raw":
		testutil.Must(unix.Socket(unix.AF_INET, unix.SOCK_RAW, 253))
	case "elsewhere":
		cmd := exec.Command("/proc/self/exe", "helper", "app", "[::]:0")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		testutil.Must(cmd.StdinPipe())
		out := testutil.Must(cmd.StdoutPipe())
		die(cmd.Start())
		testutil.Must(bufio.NewReader(out).ReadString('\n')) // "port"
	case "client":
		for _, network := range []string{"tcp", "udp"} {
			testutil.Must(net.Dial(network, address))
		}
		testutil.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0))
		testutil.Must(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE))
		testutil.Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0))
		testutil.Must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0))
	default:
		die(fmt.Errorf("no socket %q", kind))
	}
}

// serveWithKeepAlive sends its clients keep-alive probes every second and switches off quick
// acknowledgments, as HAProxy does; see tcp(7).
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
			fmt.Println("accepted")
			go converse(conn)
		}
	}()
	h.runCommands()
}

// serveFew serves that many connections, and accepts no more.
func (h *appHelper) serveFew(number, address string) {
	n, err := strconv.Atoi(number)
	die(err)
	l := h.listen(address)
	raw := testutil.Must(l.(*net.TCPListener).SyscallConn())
	die(raw.Control(func(fd uintptr) { die(unix.Listen(int(fd), 2)) })) // a short accept queue
	go func() {
		for range n {
			go converse(testutil.Must(l.Accept()))
		}
	}()
	h.runCommands()
}

// serveOneByOne serves one client at a time, while the others wait in the accept queue.
func (h *appHelper) serveOneByOne(address string) {
	l := h.listen(address)
	go func() {
		for {
			converse(testutil.Must(l.Accept()))
		}
	}()
	h.runCommands()
}

// serveGated prints "waits" for each line from a client, and replies when the command
// "reply" comes: one line for each command.
func (h *appHelper) serveGated(address string) {
	l := h.listen(address)
	h.replies = make(chan struct{})
	go func() {
		for {
			conn := testutil.Must(l.Accept())
			go func() {
				for in := bufio.NewScanner(conn); in.Scan(); fmt.Fprintln(conn, "ok") {
					fmt.Println("waits")
					<-h.replies
				}
			}()
		}
	}()
	h.runCommands()
}

// serveInherited serves on the listener inherited as descriptor 3.
func (h *appHelper) serveInherited() {
	l, err := net.FileListener(os.NewFile(3, "listener"))
	die(err)
	go answer(l)
	h.runCommands()
}

// answer accepts connections and replies "ok" to every line, with exceptions: "slow" after
// 3 s, a line beginning with "-" never. After "bye" the server closes the connection; after
// "leak" the connection stays open when the client has closed its end.
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
			time.Sleep(3 * time.Second) // a slow request
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

// unclosedConn is a connection whose Close does nothing.
type unclosedConn struct{ net.Conn }

func (unclosedConn) Close() error { return nil }

// proxy passes on its clients' bytes to an upstream server, on connections that outlast the
// clients'.
func (h *appHelper) proxy(address, upstream string) {
	l := h.listen(address)
	go func() {
		for {
			client, err := l.Accept()
			die(err)
			server, err := net.Dial("tcp", upstream)
			die(err)
			go func() {
				io.Copy(server, client)
				client.Close()
			}()
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
		os.Exit(98) // the test has ended
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
	case "close": // the listeners
		for _, l := range h.listeners {
			die(l.Close())
		}
	case "listen":
		go answer(h.listen(arg))
	case "open": // and keep a connection
		h.conns = append(h.conns, h.openConn(arg))
	case "short":
		h.openConn(arg).Close()
	case "reply":
		h.replies <- struct{}{}
	case "shut":
		for _, conn := range h.conns {
			conn.Close()
		}
	case "call": // short connections without end, beside a talking connection
		go keepCalling(h.openConn(arg), func() { h.openConn(arg).Close() })
	case "talk": // on a connection, without end
		go keepCalling(h.openConn(arg), func() {})
	default:
		obey(command)
	}
}

// keepCalling sends a line, waits for the reply and calls also, 20 times a second.
func keepCalling(conn net.Conn, also func()) {
	for in := bufio.NewScanner(conn); ; time.Sleep(50 * time.Millisecond) { // traffic that goes on
		fmt.Fprintln(conn, "hello")
		in.Scan()
		also()
	}
}

// openConn opens a connection with one request.
func (h *appHelper) openConn(address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	die(err)
	fmt.Fprintln(conn, "hello")
	bufio.NewScanner(conn).Scan()
	return conn
}
