package procfs

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// A process with more threads is not looked at, and nor are the descriptors after the first ones: servers
// open their listeners before their connections.
const (
	maxThreads     = 128
	maxDescriptors = 256
)

var errEnough = errors.New("there are more")

// eachThread calls visit with the status of each thread of a process, until an error.
func (r Root) eachThread(pid int, visit func(status string) error) error {
	return numbers(r.path(pid, "task"), func(_, thread int) error {
		status, err := r.text(pid, "task/"+strconv.Itoa(thread)+"/status")
		return cmp.Or(err, visit(status))
	})
}

// IsAsleep reports whether all threads of a process wait for something: none runs, waits for a
// processor or for a disk.
func (r Root) IsAsleep(pid int) bool {
	err := r.eachThread(pid, func(status string) error {
		if !strings.HasPrefix(field(status, "State:"), "S") {
			return errEnough
		}
		return nil
	})
	return err == nil
}

// Trace returns the trace of a process, with the result of Listening.
func (r Root) Trace(pid int, listening map[string]bool) sig.Trace {
	t := sig.Trace{Known: true, Idle: true}
	threads := 0
	err := r.eachThread(pid, func(status string) error {
		if threads++; threads > maxThreads {
			return errEnough
		}
		addThread(&t, status)
		return nil
	})
	if err != nil {
		return sig.Trace{}
	}
	_, _ = r.eachTarget(pid, maxDescriptors, func(_ int, target []byte) {
		if listening[string(target)] {
			t.Listeners++
		}
	})
	return t
}

// addThread adds a thread to a trace by its status; see proc_pid_status(5).
func addThread(t *sig.Trace, status string) {
	for _, name := range []string{"voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"} {
		n, err := strconv.ParseUint(field(status, name), 10, 64)
		t.Switches += n
		t.Idle = t.Idle && err == nil // gVisor does not count
	}
	state := field(status, "State:")
	asleep := strings.HasPrefix(state, "S") || strings.HasPrefix(state, "D")
	pending := field(status, "SigPnd:") + field(status, "ShdPnd:")
	t.Idle = t.Idle && asleep && pending != "" && strings.Trim(pending, "0") == ""
}

// Listening returns the TCP sockets that listen in our network namespace, as "socket:[INODE]". The kernel
// lists them first, and takes milliseconds.
func (r Root) Listening() map[string]bool {
	listening := map[string]bool{}
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		_ = r.eachSocket(table, func(s *tcp.Socket) bool {
			isListening := s.State == tcp.Listen
			if isListening {
				listening[fmt.Sprintf("socket:[%d]", s.Inode)] = true
			}
			return isListening
		})
	}
	return listening
}

// Awaited returns the signals for which a process with one thread waits without a handler, by
// sigwaitinfo(2) or, those that it blocks, by signalfd(2). Which ones sigwaitinfo waits for is not shown.
func (r Root) Awaited(pid int, blocked sig.Set) (set sig.Set) {
	wchan, _ := r.text(pid, "wchan")
	if strings.Contains(wchan, "sigtimedwait") {
		return ^sig.Set(0)
	}
	if blocked == 0 {
		return 0
	}
	_, _ = r.EachTarget(pid, func(fd int, target []byte) {
		if string(target) == "anon_inode:[signalfd]" {
			info, _ := r.text(pid, "fdinfo/"+strconv.Itoa(fd))
			mask, _ := strconv.ParseUint(field(info, "sigmask:"), 16, 64)
			set |= sig.Set(mask) & blocked
		}
	})
	return set
}
