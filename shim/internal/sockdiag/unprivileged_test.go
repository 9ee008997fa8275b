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

// TestUnprivileged tests Dump and Events as a user without capabilities, with the
// sockets of another user.
func TestUnprivileged(t *testing.T) {
	netns.Need(t)
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	l := listen(t, "tcp", ":0")
	client, server := pair(t, l, "127.0.0.1")
	say(t, client, server, "ping")

	cmd := exec.Command("/proc/self/exe", "unprivileged", strconv.Itoa(int(portOf(l))))
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
		t.Skip("cannot become another user: ", err)
	}
	defer cmd.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		lines.Scan()
		if lines.Text() != want {
			t.Fatalf("the process says %q, want %q", lines.Text(), want)
		}
	}
	expect("uid 65534, without capabilities")
	id := cookie(t, server)
	expect(fmt.Sprintf("socket %d: received 4, info true", id))
	endWrite(t, client)
	server.Close()
	client.Close()
	expect(fmt.Sprintf("event of %d: received 4, lost 0", id))
}

// inUserNamespace reports whether user IDs are mapped.
func inUserNamespace() bool {
	text, _ := os.ReadFile("/proc/self/uid_map")
	return !strings.Contains(string(text), "4294967295")
}

// runUnprivileged is the main function of the process without capabilities.
func runUnprivileged(port string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	fail(err)
	if os.Getuid() != 0 && strings.Contains(string(status), "CapEff:\t0000000000000000\n") {
		fmt.Printf("uid %d, without capabilities\n", os.Getuid())
	}
	n, err := strconv.Atoi(port)
	fail(err)
	ports := []uint16{uint16(n)}
	e, err := OpenEvents(ports)
	fail(err)
	c, err := Open()
	fail(err)
	fail(c.Dump(Query{States: In(tcp.Established), Ports: ports, Info: true}, func(s *tcp.Socket) {
		fmt.Printf("socket %v: received %d, info %v\n", s.Cookie, s.Info.Received, s.HasInfo)
	}))
	for received := false; !received; {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(e.FD()), Events: unix.POLLIN}}, 10_000)
		if err == unix.EINTR {
			continue
		}
		fail(err)
		var last tcp.Socket
		lost, err := e.Read(func(s *tcp.Socket) { last, received = *s, true })
		fail(err)
		fmt.Printf("event of %v: received %d, lost %d\n", last.Cookie, last.Info.Received, lost)
	}
}
