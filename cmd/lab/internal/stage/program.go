package stage

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// Command returns a command with nothing but PATH in its environment, in a session of its own, so
// that no signal to our group is its.
func Command(ctx context.Context, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// Init returns a command that is PID 1 of new namespaces, with a /proc of its own. The words may begin with
// those of unshare(1).
func Init(ctx context.Context, words ...string) *exec.Cmd {
	cmd := Command(ctx, append([]string{"unshare", "--mount-proc"}, words...)...)
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	return cmd
}

// Linked returns what Init does, for a command that Link gives its network before it starts. unshare(1)
// makes the network: CLONE_NEWNET in clone(2) takes long while many namespaces are made and removed, and
// Go's runtime, and with it the load, would stand still meanwhile.
func Linked(ctx context.Context, words ...string) *exec.Cmd {
	wait := []string{"--net", "sh", "-ec", `read -r network || true; exec "$@"`, "stage"}
	return Init(ctx, append(wait, words...)...)
}

// Program is a program that has been started.
type Program struct {
	*exec.Cmd
	Gone  chan struct{} // closed when the process has exited
	Ended time.Time     // when
	// Network lasts longer than the processes, as a pod's does for a while: late connections are
	// refused and do not hang. It is nil without Link.
	Network *os.File
	stdin   io.WriteCloser
	said    *os.File
}

// Start starts a command. Its output is Said; its standard input ends with Link or Close.
func Start(cmd *exec.Cmd) *Program {
	p := &Program{Cmd: cmd, Gone: make(chan struct{}), stdin: must.Get(cmd.StdinPipe())}
	p.said = must.Get(os.CreateTemp("", "lab-"))
	os.Remove(p.said.Name())
	must.Do(p.said.Chmod(0o666))
	cmd.Stdout, cmd.Stderr = p.said, p.said
	must.Do(cmd.Start())
	go func() {
		cmd.Wait()
		p.Ended = time.Now()
		close(p.Gone)
	}()
	return p
}

//go:embed link.sh
var link string

// Link connects the network of a process with ours and has the process go on. The link's end here
// is a veth device with a name, or the device that connect makes, with an end called eth0 there.
func (p *Program) Link(name, here, there string, connect func(network *os.File)) {
	path := fmt.Sprintf("/proc/%d/ns/net", p.Process.Pid)
	ours := must.Get(os.Readlink("/proc/self/ns/net"))
	unshared := func() bool {
		theirs, err := os.Readlink(path)
		p.MustRun()
		return err == nil && theirs != ours
	}
	must.Be(must.Soon(patience, unshared), "%q has no network", p.Args)
	p.Network = must.Get(os.Open(path))
	if connect != nil {
		connect(p.Network)
	}
	Shell(link, fmt.Sprint(p.Process.Pid), name, here, there, fmt.Sprint(connect != nil))
	p.stdin.Close()
}

const patience = 60 * time.Second // for a start

// HasGone reports whether the process has exited.
func (p *Program) HasGone() bool {
	select {
	case <-p.Gone:
		return true
	default:
		return false
	}
}

// MustRun fails if the process has exited.
func (p *Program) MustRun() { must.Be(!p.HasGone(), "%q has exited:\n%s", p.Args, p.Said()) }

// Await returns when the process listens at an address, or has made the file "ready" in its folder,
// and has removed the file "starting" if it has made one, and packets pass: without a connection,
// which the server would see.
func (p *Program) Await(ctx context.Context, host string, port int) {
	ip := net.ParseIP(host).To4()
	// A socket in the state LISTEN of proc_pid_net(5), at the address or at all.
	listening := regexp.MustCompile(fmt.Sprintf(` (0+|(0{16}FFFF0{4})?%02X%02X%02X%02X):%04X 0+:0000 0A `, ip[3], ip[2], ip[1], ip[0], port))
	ready := func() bool {
		must.Do(ctx.Err())
		p.MustRun()
		listens := p.has("ready")
		for _, table := range []string{"tcp", "tcp6"} {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", p.Process.Pid, table))
			listens = listens || listening.Match(text)
		}
		return listens && !p.has("starting") && reachable(host)
	}
	must.Be(must.Soon(patience, ready), "%q is not ready after %v:\n%s", p.Args, patience, p.Said())
}

// has reports whether the process has made a file.
func (p *Program) has(name string) bool {
	_, err := os.Stat(p.Dir + "/" + name)
	return p.Dir != "" && err == nil
}

// reachable reports that a datagram to a closed port comes back as an ICMP message. A new veth
// drops packets until the kernel has noticed the carrier, seconds late on a busy machine.
func reachable(host string) bool {
	conn, err := net.Dial("udp", host+":9")
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	conn.Write([]byte("x"))
	_, err = conn.Read(make([]byte, 1))
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Said returns the output so far, of a process that may not have started, also after Close.
func (p *Program) Said() string {
	if p == nil {
		return ""
	}
	text, _ := io.ReadAll(io.NewSectionReader(p.said, 0, 1<<40))
	return string(text)
}

// Close kills the session of a process that was started.
func (p *Program) Close() {
	if p != nil {
		p.stdin.Close()
		syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		<-p.Gone
		p.Network.Close() // without effect if nil
	}
}

// Shell runs a script of sh -e with words.
func Shell(script string, words ...string) {
	text, err := exec.Command("sh", append([]string{"-ec", script, "shell"}, words...)...).CombinedOutput()
	must.Be(err == nil, "cannot run %q, %q: %w: %s", script, words, err, text)
}
