package sockdiag

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

const nobodyID = 65534

// TestNobody: a user without any capability is told everything, of another
// user's sockets, and hears of their ends.
func TestNobody(t *testing.T) {
	netns.Need(t)
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	l := listen(t, "tcp", ":0")
	client, server := pair(t, l, "127.0.0.1")
	say(t, client, server, "ping")

	cmd := exec.Command("/proc/self/exe", "nobody", strconv.Itoa(int(portOf(l))))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID, NoSetGroups: inUserNamespace()},
		Pdeathsig:  syscall.SIGKILL,
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	if err := cmd.Start(); err != nil {
		t.Skip("cannot become another user here: ", err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	hear := func(want string) {
		t.Helper()
		if lines.Scan(); lines.Text() != want {
			t.Fatalf("got  %s\nwant %s", lines.Text(), want)
		}
	}
	hear("I am 65534, without capabilities")
	id := cookie(t, server)
	hear(fmt.Sprintf("%d received 4, timed: true", id))
	endWrite(t, client)
	server.Close()
	client.Close()
	hear(fmt.Sprintf("%d is gone after 4, lost: 0", id))
}

// inUserNamespace reports whether user ids are mapped.
func inUserNamespace() bool {
	text, _ := os.ReadFile("/proc/self/uid_map")
	return !strings.Contains(string(text), "4294967295")
}

// nobody is the other user.
func nobody(port string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	fail(err)
	if os.Getuid() != 0 && strings.Contains(string(status), "CapEff:\t0000000000000000\n") {
		fmt.Printf("I am %d, without capabilities\n", os.Getuid())
	}
	n, err := strconv.Atoi(port)
	fail(err)
	ports := []uint16{uint16(n)}
	e, err := OpenEvents(ports)
	fail(err)
	c, err := Open()
	fail(err)
	fail(c.Dump(Query{States: In(tcp.Established), Ports: ports, Info: true}, func(s *tcp.Socket) {
		fmt.Printf("%v received %d, timed: %v\n", s.Cookie, s.Info.Received, s.HasInfo)
	}))
	for told := false; !told; {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(e.FD()), Events: unix.POLLIN}}, 10_000)
		if err == unix.EINTR {
			continue
		}
		fail(err)
		var last tcp.Socket
		lost, err := e.Read(func(s *tcp.Socket) { last, told = *s, true })
		fail(err)
		fmt.Printf("%v is gone after %d, lost: %d\n", last.Cookie, last.Info.Received, lost)
	}
}
