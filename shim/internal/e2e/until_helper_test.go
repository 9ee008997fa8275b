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
		newActor().lines(args...)
	case "probing":
		newActor().probing(args[0])
	case "few":
		newActor().few(args[0], args[1])
	case "one":
		newActor().one(args[0])
	case "inherited":
		newActor().inherited()
	case "web":
		newActor().web(args[0], args[1])
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
type actor struct {
	listeners []net.Listener
	opened    []net.Conn
	graceful  func() // on TERM
}

func newActor() *actor { return &actor{} }

func (p *actor) listen(address string) net.Listener {
	l, err := net.Listen("tcp", address)
	die(err)
	if len(p.listeners) == 0 {
		_, port, _ := net.SplitHostPort(l.Addr().String())
		fmt.Println("port", port)
	}
	p.listeners = append(p.listeners, l)
	return l
}

// lines answers each line, at each address; those that begin with a network are
// not of TCP.
func (p *actor) lines(addresses ...string) {
	for _, address := range addresses {
		switch network, path, _ := strings.Cut(address, " "); network {
		case "unix":
			go answer(testutil.Must(net.Listen("unix", path)))
		case "udp":
			testutil.Must(net.ListenPacket("udp", path))
		default:
			go answer(p.listen(address))
		}
	}
	p.obey()
}

// probing probes its clients every second, and has the kernel acknowledge nothing at
// once, as HAProxy does.
func (p *actor) probing(address string) {
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
	p.obey()
}

// few answers so many connections, and accepts no more.
func (p *actor) few(number, address string) {
	n, err := strconv.Atoi(number)
	die(err)
	l := p.listen(address)
	raw := testutil.Must(l.(*net.TCPListener).SyscallConn())
	die(raw.Control(func(fd uintptr) { die(unix.Listen(int(fd), 2)) })) // as few may wait
	go func() {
		for range n {
			go converse(testutil.Must(l.Accept()))
		}
	}()
	p.obey()
}

// one serves one client after the other, and so the rest wait in the queue.
func (p *actor) one(address string) {
	l := p.listen(address)
	go func() {
		for {
			converse(testutil.Must(l.Accept()))
		}
	}()
	p.obey()
}

// inherited has its listener from whoever started us.
func (p *actor) inherited() {
	l, err := net.FileListener(os.NewFile(3, "listener"))
	die(err)
	go answer(l)
	p.obey()
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
			conn = leaked{conn}
		case line == "bye":
			fmt.Fprintln(conn, "ok")
			return
		case !strings.HasPrefix(line, "-"):
			fmt.Fprintln(conn, "ok")
		}
	}
}

// leaked is a connection that is forgotten.
type leaked struct{ net.Conn }

func (leaked) Close() error { return nil }

// proxy passes on what its clients say. Its own connections outlast theirs.
func (p *actor) proxy(address, upstream string) {
	l := p.listen(address)
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
	p.obey()
}

func (p *actor) obey() {
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
			if p.graceful != nil {
				p.graceful()
			}
		case c := <-commands:
			p.do(c)
			fmt.Println("did", c)
		}
	}
}

func (p *actor) do(command string) {
	word, arg, _ := strings.Cut(command, " ")
	switch word {
	case "close": // listens no more
		for _, l := range p.listeners {
			die(l.Close())
		}
	case "open": // a connection that is kept
		p.opened = append(p.opened, p.ask(arg))
	case "short":
		p.ask(arg).Close()
	case "shut":
		for _, conn := range p.opened {
			conn.Close()
		}
	case "call": // short connections without end, and one that talks
		kept := p.ask(arg)
		go func() {
			for in := bufio.NewScanner(kept); ; time.Sleep(50 * time.Millisecond) {
				fmt.Fprintln(kept, "hello")
				in.Scan()
				p.ask(arg).Close()
			}
		}()
	case "talk": // that one alone
		kept := p.ask(arg)
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

func (p *actor) ask(address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	die(err)
	fmt.Fprintln(conn, "hello")
	bufio.NewScanner(conn).Scan()
	return conn
}
