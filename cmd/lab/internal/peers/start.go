package peers

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// Server is a program that is PID 1 of a namespace.
type Server struct {
	*exec.Cmd
	// Network lasts longer than the processes, as a pod's does for a while: late connections are
	// refused and do not hang.
	Network *os.File
	Gone    chan struct{} // closed when PID 1 has exited
}

// Start starts a command, whose script reads standard input to its end before it uses the
// network that connect connects.
func Start(cmd *exec.Cmd, namespaces uintptr, connect func(*Server)) *Server {
	s := &Server{Cmd: cmd, Gone: make(chan struct{})}
	// A signal to our group is not the server's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Setsid: true}
	stdin := must.Get(cmd.StdinPipe())
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		must.Do(fmt.Errorf("cannot make namespaces: %w", err))
	}
	go func() {
		cmd.Wait()
		close(s.Gone)
	}()
	s.Network = must.Get(os.Open(fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid)))
	connect(s)
	return s
}

// Kill kills a server that was started.
func (s *Server) Kill() {
	if s != nil {
		s.Process.Kill()
		<-s.Gone
	}
}
