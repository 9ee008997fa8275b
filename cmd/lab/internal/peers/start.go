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
	output  string        // a file
}

// Start starts a command, whose script reads standard input to its end before it uses the
// network that connect connects. The command's output goes to a file.
func Start(cmd *exec.Cmd, output string, namespaces uintptr, connect func(*Server)) *Server {
	s := &Server{Cmd: cmd, Gone: make(chan struct{}), output: output}
	file := must.Get(os.Create(output))
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
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

// Said returns the output so far, of a server that may not have started.
func (s *Server) Said() string {
	if s == nil {
		return ""
	}
	text, _ := os.ReadFile(s.output)
	return string(text)
}

// Close kills a server that was started.
func (s *Server) Close() {
	if s != nil {
		s.Process.Kill()
		<-s.Gone
		s.Network.Close()
	}
}

// Shell runs a script of sh -e with words.
func Shell(script string, words ...string) error {
	text, err := exec.Command("sh", append([]string{"-ec", script, "shell"}, words...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot run %q, %q: %w: %s", script, words, err, text)
	}
	return nil
}
