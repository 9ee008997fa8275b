package box

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// catch prints "got NAME" for each signal, serves at each address (see serve), and obeys
// the lines of standard input (see catcher.obey).
func catch(addresses []string) {
	// Preemption in Go's runtime sends SIGURG, and catch would print "got URG". The runtime
	// reads the setting only at its start. The path is that of os.Args, because tests run
	// helpers without /proc.
	if os.Getenv("GODEBUG") == "" {
		os.Setenv("GODEBUG", "asyncpreemptoff=1")
		Die(syscall.Exec(os.Args[0], os.Args, os.Environ()))
	}
	proc.ReserveThreads(4) // a thread that cannot start would end the program in a full pids cgroup
	got := make(chan os.Signal, 1000)
	signal.Notify(got)
	c := &catcher{replies: make(chan bool)}
	for _, address := range addresses {
		c.serve(address)
	}
	commands := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			commands <- in.Text()
		}
		os.Exit(98) // the test is gone
	}()
	fmt.Println("ready")
	for {
		select {
		case s := <-got:
			fmt.Println("got", sig.Signal(s.(syscall.Signal)))
		case command := <-commands:
			c.obey(command)
			fmt.Println("did", command)
		}
	}
}

// catcher is the state of the catch helper.
type catcher struct {
	listeners []net.Listener
	conns     []net.Conn
	replies   chan bool
}

// obey executes a command.
func (c *catcher) obey(command string) {
	word, arg, _ := strings.Cut(command, " ")
	switch word {
	case "exit":
		code, err := strconv.Atoi(arg)
		Die(err)
		os.Exit(code)
	case "killed": // by a signal
		s := parseSignal(arg)
		signal.Reset(s)
		Die(unix.Kill(unix.Getpid(), s))
	case "run": // a line of shell
		cmd := exec.Command("sh", "-c", arg)
		cmd.Run()
		fmt.Println(cmd.ProcessState)
	case "inside": // a signal to lameduck
		Die(unix.Kill(unix.Getppid(), parseSignal(arg)))
	case "reply": // to a "wait" of a client's
		c.replies <- true
	case "listen":
		c.serve(arg)
	case "close": // the listeners
		for _, l := range c.listeners {
			Die(l.Close())
		}
	case "open": // and keep a connection
		c.conns = append(c.conns, openConn(arg))
	case "shut": // all such connections
		for _, conn := range c.conns {
			conn.Close()
		}
	case "call": // short connections without end, beside a talking connection
		go keepCalling(openConn(arg), func() { openConn(arg).Close() })
	case "talk": // on a connection, without end
		go keepCalling(openConn(arg), func() {})
	default:
		Die(fmt.Errorf("unknown command %q", command))
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
func openConn(address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	Die(err)
	fmt.Fprintln(conn, "hello")
	bufio.NewScanner(conn).Scan()
	return conn
}

// serve replies to lines at an address: of TCP, or of another network if the address begins
// with its name and a colon, and to datagrams. Sockets of other kinds do not answer: "elsewhere" is a server in
// another network namespace, "client" has sockets that serve nobody,
// and "fd" is a server on an inherited descriptor. For "http", "http1" and "h2" see serveWeb.
func (c *catcher) serve(address string) {
	kind, rest, _ := strings.Cut(address, ":")
	switch kind {
	case "http", "http1", "h2":
		go serveWeb(testutil.Must(net.Listen("tcp", rest)), kind)
	case "unix":
		go c.answer(testutil.Must(net.Listen("unix", rest)))
	case "udp":
		go echo(testutil.Must(net.ListenPacket("udp", rest)))
	case "elsewhere":
		words := Helper("catch", "[::]:0")
		cmd := exec.Command(words[0], words[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		testutil.Must(cmd.StdinPipe())
		out := testutil.Must(cmd.StdoutPipe())
		Die(cmd.Start())
		testutil.Must(bufio.NewReader(out).ReadString('\n')) // "port"
	case "client":
		for _, network := range []string{"tcp", "udp"} {
			testutil.Must(net.Dial(network, rest))
		}
		testutil.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0))
		testutil.Must(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE))
		testutil.Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0))
	case "fd":
		go c.answer(testutil.Must(net.FileListener(os.NewFile(3, "listener"))))
	default:
		go c.answer(c.listen(address))
	}
}

// echo sends datagrams back.
func echo(conn net.PacketConn) {
	for text := make([]byte, 100); ; {
		n, from, err := conn.ReadFrom(text)
		Die(err)
		conn.WriteTo(text[:n], from)
	}
}

// listen prints the port of a new listener of TCP.
func (c *catcher) listen(address string) net.Listener {
	config := net.ListenConfig{KeepAlive: -1} // see Network.Connect
	l, err := config.Listen(context.Background(), "tcp", address)
	Die(err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	fmt.Println("port", port)
	c.listeners = append(c.listeners, l)
	return l
}

// Later is a line of as many bytes as a small request of HTTP.
const Later = "later: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// answer accepts connections, and replies "ok" to every line: to "wait" at the command
// "reply", to Later with as much after 20 ms.
func (c *catcher) answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for in := bufio.NewScanner(conn); in.Scan(); {
				switch in.Text() {
				case "wait":
					fmt.Println("waits")
					<-c.replies
				case Later:
					time.Sleep(20 * time.Millisecond) // work
					fmt.Fprint(conn, Later)
				}
				fmt.Fprintln(conn, "ok")
			}
		}()
	}
}
