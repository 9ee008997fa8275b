package shim

import (
	"bufio"
	"bytes"
	"debug/elf"
	le "encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// What the tests here have in common: something is amiss, for the built
// lameduck as PID 1, and a stop with a hold goes as ever.

// soak is how long TestSoak lasts: 30s and more before a release.
var soak = flag.Duration("soak", 5*time.Second, "how long TestSoak lasts")

// trapper is a shell that catches TERM, for where our own programs cannot run.
var trapper = []string{"sh", "-c", `trap 'echo got TERM; exit 7' TERM; echo ready $# ${#1}; sleep 1000 & wait`, "sh"}

// stopsInTime wants a stop that holds one second, and leaves with the command's
// code as soon as there is one.
func (b *box) stopsInTime() {
	b.t.Helper()
	b.triggers(func() {})
	b.exits()
}

// exits has the command exit, and wants lameduck to do the same at once.
func (b *box) exits() {
	b.t.Helper()
	start := time.Now()
	b.tell("exit 7")
	b.wants(7)
	if took := time.Since(start); took > 2*time.Second {
		b.t.Errorf("took %v to leave; it said:\n%v", took, b.err.all())
	}
}

// triggers sends TERM, does what is to happen during the hold, and wants TERM to
// reach the command when the hold of one second is over, and not much later.
func (b *box) triggers(during func()) {
	b.t.Helper()
	start := time.Now()
	b.signal(sig.TERM)
	during()
	if after := b.out.wait(b.t, "got TERM").at.Sub(start); after < time.Second || after > 3*time.Second {
		b.t.Errorf("TERM after %v; it said:\n%v", after, b.err.all())
	}
}

// status is a field of proc_pid_status(5), "" where there is no such process.
func status(pid int, field string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\n"+field+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// over reports whether a process has ended.
func over(pid int) bool {
	state := status(pid, "State")
	return state == "" || strings.HasPrefix(state, "Z")
}

// rss is what a process has of memory of its own, in KiB.
func rss(pid int) int {
	kib, _ := strconv.Atoi(strings.TrimSuffix(status(pid, "RssAnon"), " kB"))
	return kib
}

// heap is what Go's runtime lets pile up before it first collects garbage, and
// some more, in KiB.
const heap = 6 << 10

// children are the pids, as we see them, of a process's children, dead ones too.
func children(pid int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if child, _ := strconv.Atoi(filepath.Base(dir)); status(child, "PPid") == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}

// child waits until lameduck has but one child.
func (b *box) child() int {
	b.t.Helper()
	var pids []int
	eventually(b.t, "one child", func() bool { pids = children(b.cmd.Process.Pid); return len(pids) == 1 })
	return pids[0]
}

// eventually polls for what has no other sign.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v, still not: %s", patience, what)
		}
	}
}

// cgroup is the directory of a control group.
type cgroup string

// newCgroup makes a control group of this controller's: in version 1's hierarchy,
// or in version 2's where it gives the controller to its groups.
func newCgroup(t *testing.T, controller string) cgroup {
	t.Helper()
	parent := "/sys/fs/cgroup/" + controller
	if _, err := os.Stat(parent + "/cgroup.procs"); err != nil {
		parent = "/sys/fs/cgroup"
		if given, _ := os.ReadFile(parent + "/cgroup.subtree_control"); !slices.Contains(strings.Fields(string(given)), controller) {
			t.Skip("no cgroup controller ", controller)
		}
	}
	dir, err := os.MkdirTemp(parent, "lameduck-test-")
	if err != nil {
		t.Skip("no cgroup of our own: ", err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(patience); os.Remove(dir) != nil && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // until the last of it is dead
		}
	})
	return cgroup(dir)
}

func (c cgroup) has(name string) bool {
	_, err := os.Stat(filepath.Join(string(c), name))
	return err == nil
}

func (c cgroup) get(t *testing.T, name string) int {
	t.Helper()
	text := must(os.ReadFile(filepath.Join(string(c), name)))
	return must(strconv.Atoi(strings.TrimSpace(string(text))))
}

func (c cgroup) set(t *testing.T, name string, value int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(c), name), []byte(strconv.Itoa(value)), 0); err != nil {
		t.Fatal(err)
	}
}

// TestFullPids: no process and no thread can be had any more, from some moment
// on, not even for a writer whose reader has gone to sleep by then. (How many
// threads Go's runtime has and needs is much up to chance, hence the rounds.)
func TestFullPids(t *testing.T) {
	for _, when := range []string{"before the trigger", "during the hold", "after the stop signal"} {
		for round, stage := range []string{"", "one-cpu,", "one-cpu,", "one-cpu,", "", ""} {
			t.Run(fmt.Sprint(when, round), func(t *testing.T) {
				t.Parallel()
				fillPids(t, when, stage, round > 0)
			})
		}
	}
}

func fillPids(t *testing.T, when, stage string, stuck bool) {
	group := newCgroup(t, "pids")
	b := newBox(t, fmt.Sprintf("stage:%scgroup=%s", stage, group), nil, append([]string{"-d", "1", "--log-level=debug", "--"}, self("sturdy")...)...)
	r, w := ends(t, pipe)
	b.cmd.Stderr = w
	b.run()
	b.out.wait(t, "ready")
	threads := status(b.cmd.Process.Pid, "Threads")
	group.set(t, "pids.max", group.get(t, "pids.current")+20)
	fillAt := func(moment string) {
		if moment != when {
			return
		}
		b.tell("fill")
		b.out.wait(t, "full")
		if now, most := group.get(t, "pids.current"), group.get(t, "pids.max"); now != most {
			t.Errorf("%d of %d processes: not full", now, most)
		}
		if stuck {
			stuff(t, w)
		} else {
			go io.Copy(io.Discard, r)
		}
		b.busy(1000)
	}
	fillAt("before the trigger")
	b.triggers(func() { fillAt("during the hold") })
	fillAt("after the stop signal")
	if now := status(b.cmd.Process.Pid, "Threads"); now != threads {
		t.Errorf("%s threads, later %s", threads, now)
	}
	b.exits()
}

// busy has lameduck pass n signals one by one, and write of each.
func (b *box) busy(n int) {
	b.t.Helper()
	already := len(b.out.all())
	for i := range n {
		b.signal(sig.WINCH)
		b.out.count(b.t, already+i+1)
	}
}

// Two ways in which a reader and a writer are connected.
func pipe(fds *[2]int) error { return unix.Pipe2(fds[:], unix.O_CLOEXEC) }

func socket(fds *[2]int) (err error) {
	*fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return err
}

// ends are the two ends of such a connection, without what Go would do to them.
func ends(t *testing.T, connect func(fds *[2]int) error) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := connect(&fds); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// stuff writes all that goes without waiting.
func stuff(t *testing.T, w *os.File) {
	fd := int(w.Fd())
	unix.SetNonblock(fd, true)
	defer unix.SetNonblock(fd, false)
	for size := 4096; size > 0; size /= 8 {
		var err error
		for err == nil || err == unix.EINTR {
			_, err = unix.Write(fd, make([]byte, size))
		}
		if err != unix.EAGAIN {
			t.Error(err)
		}
	}
}

// awaitHold reads until the line at the trigger.
func awaitHold(t *testing.T, r *os.File) {
	for in := bufio.NewScanner(r); in.Scan(); {
		if strings.Contains(in.Text(), "holding") {
			return
		}
	}
	t.Error("no line at the trigger")
}

// TestStderr: nothing that may become of standard error delays a stop, and the
// PIPE that it makes the kernel send us is not passed on; others are.
func TestStderr(t *testing.T) {
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
	for kind, connect := range map[string]func(fds *[2]int) error{"pipe": pipe, "socket": socket} {
		for how, fail := range map[string]func(t *testing.T, r, w *os.File){
			"full":   func(t *testing.T, r, w *os.File) { stuff(t, w) },
			"closed": func(t *testing.T, r, w *os.File) { r.Close() },
		} {
			run(how+" "+kind, func(t *testing.T) {
				r, w := ends(t, connect)
				fail(t, r, w)
				stderrFails(t, "stage", w, func() {})
			})
			run(kind+" "+how+" during the hold", func(t *testing.T) {
				r, w := ends(t, connect)
				stderrFails(t, "stage", w, func() { awaitHold(t, r); fail(t, r, w) })
			})
		}
	}
	run("dev full", func(t *testing.T) {
		w, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer w.Close()
		stderrFails(t, "stage", w, func() {})
	})
	run("no descriptor", func(t *testing.T) { stderrFails(t, "stage:no-stderr", nil, func() {}) })
}

func stderrFails(t *testing.T, stage string, w *os.File, during func()) {
	b := newBox(t, stage, nil, append([]string{"-d", "1", "--log-level=debug", "--"}, self("catch")...)...)
	if w != nil {
		b.cmd.Stderr = w
	}
	b.run()
	b.out.wait(t, "ready")
	b.busy(100)
	b.triggers(during)
	b.busy(1) // after which what PIPEs of our own were under way have been seen
	b.signal(sig.PIPE)
	b.out.wait(t, "got PIPE")
	b.exits()
	if n := b.tally()["PIPE"]; n != 1 {
		t.Errorf("PIPE came %d times", n)
	}
}

// tally is how often the command says it got which signal.
func (b *box) tally() map[string]int {
	got := map[string]int{}
	for _, line := range b.out.all() {
		if name, ok := strings.CutPrefix(line.text, "got "); ok {
			got[name]++
		}
	}
	return got
}

// TestStopped: a command that is stopped gets TERM and is woken; KILL needs no
// waking, be it ours or somebody's.
func TestStopped(t *testing.T) {
	stopped := func(t *testing.T, flags ...string) (b *box, command int) {
		t.Parallel()
		b = boot(t, nil, append(append(flags, "--"), self("catch")...)...)
		b.out.wait(t, "ready")
		command = b.child()
		b.tell("killed STOP")
		eventually(t, "stopped", func() bool { return strings.HasPrefix(status(command, "State"), "T") })
		return b, command
	}
	t.Run("TERM", func(t *testing.T) {
		b, _ := stopped(t, "-d", "1")
		b.triggers(func() {})
		b.out.wait(t, "got CONT")
		b.exits()
	})
	t.Run("our KILL", func(t *testing.T) {
		b, _ := stopped(t, "-d", "1", "-r", "TERM:KILL")
		b.signal(sig.TERM)
		b.wants(137)
	})
	t.Run("KILL from elsewhere", func(t *testing.T) {
		b, command := stopped(t, "-d", "1")
		unix.Kill(command, unix.SIGKILL)
		b.wants(137)
	})
}

// TestStoppedInHold: when lameduck itself was stopped, the hold ends as soon as
// it goes on, if it should have ended meanwhile.
func TestStoppedInHold(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, append([]string{"-d", "1", "--"}, self("catch")...)...)
	b.out.wait(t, "ready")
	start := time.Now()
	b.triggers(func() {
		b.err.wait(t, "holding")
		b.signal(sig.STOP)
		eventually(t, "the hold should be over", func() bool { return time.Since(start) > 1500*time.Millisecond })
		if said := len(b.out.all()); said != 1 {
			t.Errorf("%d lines while stopped", said)
		}
		b.signal(sig.CONT)
	})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("TERM after %v", took)
	}
	b.exits()
}

// TestIgnoresAll: a command that nothing can move gets its TERM, the report is
// written ahead, and the orchestrator's KILL ends all.
func TestIgnoresAll(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, "-d", "1", "--grace-period", "3", "--", "sh", "-c", `trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM; echo ready; while :; do sleep 1; done`)
	b.out.wait(t, "ready")
	command := b.child()
	b.signal(sig.TERM)
	if said := b.err.wait(t, "still runs").text; !strings.Contains(said, "sent TERM at +1.0 s") {
		t.Errorf("said %q", said)
	}
	b.cmd.Process.Kill()
	if code := b.leaves(); code != -1 {
		t.Errorf("left with %d", code)
	}
	eventually(t, "the command's end", func() bool { return over(command) })
}

// isRoot reports whether we are root, and not of a user namespace alone.
func isRoot() bool {
	ids, _ := os.ReadFile("/proc/self/uid_map")
	return os.Getuid() == 0 && slices.Equal(strings.Fields(string(ids)), []string{"0", "0", "4294967295"})
}

// TestForkBomb: a bomb that is bounded, by a cgroup or else by its user's limit.
// (Not parallel, as it takes all there is of the machine.)
func TestForkBomb(t *testing.T) {
	t.Run("cgroup", func(t *testing.T) {
		group := newCgroup(t, "pids")
		group.set(t, "pids.max", 60)
		bombed(t, "cgroup="+string(group))
	})
	t.Run("user", func(t *testing.T) {
		if isRoot() {
			bombed(t, "nproc=60:60,uid=61234")
		} else {
			bombed(t, "nproc=200:200") // all that is ours counts
		}
	})
}

func bombed(t *testing.T, bound string) {
	b := bootFrom(t, "stage:"+bound, nil, append([]string{"-d", "1", "--"}, self("sturdy")...)...)
	b.out.wait(t, "ready")
	b.tell("bomb")
	b.out.wait(t, "bombed")
	b.stopsInTime()
}

// breeder is a program that has 100 000 orphans: a thousand times a child that
// leaves a hundred behind. What it runs in is as small as can be, since that is
// what a fork takes its time for.
func breeder(t *testing.T) (path string) {
	script := "#!/bin/sh\ni=0; while [ $i -lt 1000 ]; do (j=0; while [ $j -lt 100 ]; do : & j=$((j+1)); done); i=$((i+1)); done\n"
	path = program(t, map[string][]byte{"amd64": {
		0x41, 0xbc, 0xe8, 3, 0, 0, //       mov  $1000, %r12d
		0x6a, 56, 0x58, 0x6a, 17, 0x5f, //  family: eax = clone, edi = SIGCHLD
		0x31, 0xf6, 0x0f, 5, //             esi = 0; syscall
		0xbb, 100, 0, 0, 0, //              mov  $100, %ebx
		0x85, 0xc0, 0x74, 19, //            if it is the child: go to orphan
		0x89, 0xc7, 0x6a, 61, 0x58, //      edi = the child, eax = wait4
		0x31, 0xd2, 0x45, 0x31, 0xd2, //    edx, r10d = 0
		0x0f, 5, 0x41, 0xff, 0xcc, //       syscall; dec %r12d
		0x75, 0xdc, 0xeb, 18, //            if it is not 0: go to family, else to exit
		0x6a, 56, 0x58, //                  orphan: eax = clone
		0xbf, 0x11, 0x41, 0, 0, 0x0f, 5, // edi = CLONE_VM|CLONE_VFORK|SIGCHLD; syscall
		0x85, 0xc0, 0x74, 4, //             if it is the child: go to exit
		0xff, 0xcb, 0x75, 0xee, //          dec %ebx; if it is not 0: go to orphan
		0xb8, 231, 0, 0, 0, 0x31, 0xff, //  exit: eax = exit_group, edi = 0
		0x0f, 5, //                         syscall
	}})
	if path == "" {
		path = filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// program makes a program of this machine code, "" where there is none for the
// machine.
func program(t *testing.T, codes map[string][]byte) (path string) {
	t.Helper()
	code, machine := codes[runtime.GOARCH], elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	if code == nil {
		return ""
	}
	const base, header = 0x400000, 64 + 56
	size := uint64(header + len(code))
	var file bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Entry: base + header, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 4096},
		code,
	} {
		le.Write(&file, le.LittleEndian, part)
	}
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, file.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOrphanStorm: of 100 000 orphans none stays a zombie, and nothing of them
// stays in our memory. (Not parallel either.)
func TestOrphanStorm(t *testing.T) {
	b := boot(t, nil, append([]string{"-d", "1", "--", "sh", "-c", `echo calm; read go; "$0"; exec "$@"`, breeder(t)}, self("sturdy")...)...)
	b.out.wait(t, "calm")
	before := rss(b.cmd.Process.Pid)
	b.tell("go")
	b.out.wait(t, "ready")
	b.child()
	if after := rss(b.cmd.Process.Pid); before == 0 || after > before+heap {
		t.Errorf("%d KiB, later %d", before, after)
	}
	b.stopsInTime()
}

// TestNoProc: without /proc all that does not need it works; with what would
// need it, lameduck does what is next best.
func TestNoProc(t *testing.T) {
	shell := []string{"sh", "-c", "echo ready; sleep 1000 & wait"}
	noProc := func(t *testing.T, env []string, args ...string) *box {
		t.Parallel()
		return bootFrom(t, "stage:no-proc", env, args...)
	}
	t.Run("hold", func(t *testing.T) {
		b := noProc(t, nil, append([]string{"-d", "1", "--"}, trapper...)...)
		b.out.wait(t, "ready")
		b.stopsInTime()
	})
	t.Run("drop-unhandled", func(t *testing.T) { // passes all then
		b := noProc(t, nil, append([]string{"--drop-unhandled", "--"}, shell...)...)
		b.out.wait(t, "ready")
		b.signal(sig.HUP)
		b.wants(129)
	})
	t.Run("GODEBUG", func(t *testing.T) { // catch would need /proc if it were not passed on
		b := noProc(t, []string{"GODEBUG=asyncpreemptoff=1", "GOTRACEBACK=crash"}, append([]string{"-d", "1", "--"}, self("catch")...)...)
		b.out.wait(t, "ready")
		b.stopsInTime()
	})
	t.Run("ignored", func(t *testing.T) { // the second stage is found by the path we were executed by
		t.Parallel()
		bootFrom(t, "stage:no-proc,ignore=USR1", nil, "sh", "-c", "kill -USR1 $$; exit 7").wants(7)
	})
	t.Run("linger", func(t *testing.T) { // asks all there is
		b := noProc(t, nil, append([]string{"--linger", "10", "--", "sh", "-c", `"$@" & read x; exit 7`, "sh"}, self("remnant", "it")...)...)
		b.out.wait(t, "it up")
		b.tell("")
		b.out.wait(t, "it done")
		b.wants(7)
	})
	t.Run("linger kills", func(t *testing.T) {
		b := noProc(t, nil, append([]string{"--linger", "1", "--", "sh", "-c", `"$@" & read x; exit 7`, "sh"}, self("remnant", "it", "stubborn")...)...)
		b.out.wait(t, "it up")
		b.tell("")
		b.wants(7)
	})
}

// TestPoor: places that give a program little.
func TestPoor(t *testing.T) {
	for name, stage := range map[string]string{
		"read-only root":          "read-only",
		"no environment":          "no-env",
		"no privileges":           "uid=65534",
		"no privileges, no /proc": "no-proc,uid=65534",
		"few descriptors":         "nofile=4:16",
		"seccomp":                 "seccomp",
		"all of it":               "no-proc,read-only,no-env,ignore=CHLD,uid=65534,nofile=4:16,seccomp",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(stage, "uid") && !isRoot() {
				t.Skip("only root can be somebody else")
			}
			b := bootFrom(t, "stage:"+stage, nil, append([]string{"-d", "1", "--log-level=info", "--"}, trapper...)...)
			b.out.wait(t, "ready")
			b.stopsInTime()
			for i, want := range []string{"TERM: holding 1 s", "TERM: held 1.0 s (elapsed); sent TERM at +1.0 s; the command exited 7"} {
				if said := b.err.all(); len(said) != 2 || !strings.Contains(said[i].text, want) {
					t.Errorf("said %v, want %q", said, want)
				}
			}
		})
	}
}

// TestNoSubreaper: one that cannot have orphans, and is not PID 1, says so once
// and goes on, unless it was asked for.
func TestNoSubreaper(t *testing.T) {
	t.Parallel()
	b := bootFrom(t, "stage:seccomp", nil, binary, "sh", "-c", "exit 7")
	b.wants(7)
	if said := b.err.all(); len(said) != 1 || !strings.Contains(said[0].text, "orphans will not be reaped") {
		t.Errorf("said %v", said)
	}
	bootFrom(t, "stage:seccomp", nil, binary, "-s", "sh", "-c", "exit 7").wants(125)
}

// TestMemory: at the limit of its memory cgroup, where the kernel kills others.
func TestMemory(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, "memory")
	for name, limit := range map[string]int{"memory.limit_in_bytes": 64 << 20, "memory.max": 64 << 20, "memory.swap.max": 0} {
		if group.has(name) {
			group.set(t, name, limit)
		}
	}
	greedy := `trap 'echo got TERM; read x; exit 7' TERM; (while :; do "$@"; echo "hog $?"; done) & echo ready; wait`
	b := bootFrom(t, "stage:cgroup="+string(group), nil, append([]string{"-d", "1", "--", "sh", "-c", greedy, "sh"}, self("hog")...)...)
	hogs := func(n int) {
		b.out.until(t, "more hogs killed", func() bool { return countOf(b.out.said, "hog 137") >= n })
	}
	hogs(3)
	b.triggers(func() { hogs(6) })
	hogs(9)
	b.exits()
}

// The kernel's limits of what a program can be given: of one string, and of all.
var longestString = 32*os.Getpagesize() - 1

func argMax() int {
	var stack unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_STACK, &stack)
	return int(min(stack.Cur, 24<<20) / 4)
}

// stuffed appends strings to list, until what is left of ARG_MAX for the whole
// box is but little.
func stuffed(b *box, list []string, little int) []string {
	room := argMax() - little - len(b.cmd.Path) - 1
	for _, word := range slices.Concat(b.cmd.Args, b.cmd.Env) {
		room -= len(word) + 1 + 8
	}
	for room > 100 {
		word := fmt.Sprintf("N%02d=%s", len(list), strings.Repeat("x", min(room-9, longestString)-4))
		list = append(list, word)
		room -= len(word) + 1 + 8
	}
	return list
}

// TestLongArguments: as much as the kernel lets anybody have, and a command
// that cannot be given as much as we were.
func TestLongArguments(t *testing.T) {
	trapping := append([]string{"-d", "1", "--"}, trapper...)
	t.Run("arguments", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "stage", nil, trapping...)
		before := len(b.cmd.Args)
		b.cmd.Args = stuffed(b, b.cmd.Args, 4096)
		b.run()
		b.out.wait(t, fmt.Sprintf("ready %d %d", len(b.cmd.Args)-before, longestString))
		b.stopsInTime()
	})
	t.Run("environment", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "stage", nil, "-d", "1", "--", "sh", "-c", `echo ${#N02} $(env | grep -c '^N'); `+trapper[2])
		b.cmd.Env = stuffed(b, b.cmd.Env, 4096)
		b.run()
		b.out.wait(t, fmt.Sprintf("%d %d", longestString-4, len(b.cmd.Env)-2)) // PATH and GORACE
		b.stopsInTime()
	})
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir() // so long a path that with it the command's share is more than ours
		for len(dir) < 3800 {
			dir += "/" + strings.Repeat("d", 200)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/program", []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		b := newBox(t, "stage", nil, "program")
		b.cmd.Env = []string{"PATH=" + dir}
		b.cmd.Args = stuffed(b, b.cmd.Args, 1024)
		b.run()
		b.wants(126)
		if said := b.err.all(); len(said) != 1 || !strings.Contains(said[0].text, `cannot run "program": argument list too long`) {
			t.Errorf("said %v", said)
		}
	})
}

// waiter is a program that waits for ever. Unlike all others it needs no
// descriptor to be loaded.
func waiter(t *testing.T) (path string) {
	t.Helper()
	path = program(t, map[string][]byte{
		"amd64": {0x6a, 34, 0x58, 0x0f, 5, 0xeb, 0xf9},                           // pause, again
		"arm64": {0x28, 0x09, 0x80, 0xd2, 1, 0, 0, 0xd4, 0xfe, 0xff, 0xff, 0x17}, // ppoll of nothing, again
	})
	if path == "" {
		t.Skip("no machine code for ", runtime.GOARCH)
	}
	return path
}

// TestDescriptors: few are enough, and too few are said to be.
func TestDescriptors(t *testing.T) {
	t.Run("3 of 16", func(t *testing.T) {
		t.Parallel()
		b := bootFrom(t, "stage:nofile=3:16", nil, "-d", "1", "--", waiter(t))
		var limits string
		eventually(t, "the command's limit is 3 of 16", func() bool {
			if pids := children(b.cmd.Process.Pid); len(pids) == 1 {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pids[0]))
				limits = string(text)
			}
			return regexp.MustCompile(`Max open files +3 +16 `).MatchString(limits)
		})
		b.signal(sig.TERM)
		b.wants(143)
	})
	for hard := 3; hard <= 12; hard++ {
		t.Run(fmt.Sprintf("%d of %d", hard, hard), func(t *testing.T) {
			t.Parallel()
			b := bootFrom(t, fmt.Sprintf("stage:nofile=%d:%d", hard, hard), nil, "sh", "-c", "exit 7")
			code, said := b.leaves(), b.err.all()
			if code == 125 && len(said) == 1 && strings.Contains(said[0].text, "file descriptors are needed") {
				return
			}
			if hard <= 6 || code != 7 {
				t.Errorf("left with %d; it said:\n%v", code, said)
			}
		})
	}
}

// TestIgnoredChild: that CHLD was ignored makes us miss no end, and the command
// finds it so.
func TestIgnoredChild(t *testing.T) {
	t.Parallel()
	bootFrom(t, "stage:ignore=CHLD", nil, "--", "sh", "-c", "exit 7").wants(7)
	b := bootFrom(t, "stage:ignore=CHLD", nil, "--", "grep", "SigIgn", "/proc/self/status")
	b.wants(0)
	if got := hexOf(t, b.out.wait(t, "SigIgn").text); !got.Has(sig.CHLD) {
		t.Errorf("the command ignores %x", uint64(got))
	}
}

// many runs a test as often as that, several at a time, until it fails.
func many(t *testing.T, rounds int, test func()) {
	var workers sync.WaitGroup
	left := make(chan struct{}, rounds)
	for range rounds {
		left <- struct{}{}
	}
	close(left)
	for range 2 * runtime.NumCPU() {
		workers.Go(func() {
			for range left {
				if !t.Failed() {
					test()
				}
			}
		})
	}
	workers.Wait()
}

// bare is a box without a stage, which spares its time. /proc is not its own.
func bare(t *testing.T, args ...string) *box {
	b := newBox(t, "stage", nil, args...)
	b.cmd.Path, b.cmd.Args = binary, b.cmd.Args[3:]
	b.run()
	return b
}

// TestDieTogether: the command and an orphan that end at the same moment.
func TestDieTogether(t *testing.T) {
	twins := `( (echo up; read x) <&3 & ) 3<&0; echo up; read x; exit 7`
	many(t, 500, func() {
		b := bare(t, "sh", "-c", twins)
		b.out.count(t, 2)
		b.stdin.Close()
		b.wants(7)
	})
}

// TestLinger: what is left of the container gets its TERM, wherever it went, and
// is waited for; the code stays the command's.
func TestLinger(t *testing.T) {
	const family = `"$@" child & ("$@" orphan &); ("$@" daemon setsid &); "$@" deaf $DEAF & read x; exit 7`
	for name, c := range map[string]struct {
		env     []string
		linger  string
		done    []string
		atLeast time.Duration
	}{
		"all end":   {nil, "15", []string{"child", "orphan", "daemon", "deaf"}, 300 * time.Millisecond},
		"one stays": {[]string{"DEAF=stubborn"}, "2", []string{"child", "orphan", "daemon"}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := boot(t, c.env, append([]string{"--linger", c.linger, "--", "sh", "-c", family, "sh"}, self("remnant")...)...)
			b.out.count(t, 4)
			start := time.Now()
			b.tell("")
			b.wants(7)
			if took := time.Since(start); took < c.atLeast || took > c.atLeast+3*time.Second {
				t.Errorf("took %v", took)
			}
			for _, name := range c.done {
				b.out.wait(t, name+" done")
			}
		})
	}
}

// TestLingerLeaves: what a process that has had its TERM starts for its clean-up
// is left alone, however many others end meanwhile.
func TestLingerLeaves(t *testing.T) {
	const family = `
	(trap 'sh -c "echo cleaning; read x; echo cleaned" <&3; exit' TERM; echo up; while :; do sleep 0.05; done) 3<&0 &
	(trap 'exit' TERM; (trap '' TERM; echo up; sleep 0.3) & while :; do sleep 0.05; done) &
	read x; exit 7`
	b := boot(t, nil, "--log-level=debug", "--linger=15", "--", "sh", "-c", family)
	b.out.count(t, 2)
	b.tell("")
	b.out.wait(t, "cleaning")
	reaped := func() int {
		b.err.mu.Lock()
		defer b.err.mu.Unlock()
		return countOf(b.err.said, "lameduck: lingering: orphan")
	}
	eventually(t, "others end", func() bool { return reaped() >= 2 })
	b.tell("")
	b.wants(7)
	b.out.wait(t, "cleaned")
}

// TestParentDeath: when our parent is killed, the command hears of it.
func TestParentDeath(t *testing.T) {
	t.Parallel()
	words := self("parent", append([]string{binary, "--parent-death-signal=USR1", "--"}, self("catch")...)...)
	b := newBox(t, "", nil)
	b.cmd.Path, b.cmd.Args, b.cmd.SysProcAttr = words[0], words, nil
	b.run()
	b.out.wait(t, "ready")
	b.cmd.Process.Kill()
	b.out.wait(t, "got USR1")
	b.tell("exit 0")
	select {
	case <-b.out.ended:
	case <-time.After(patience):
		t.Error("they do not end")
	}
}

// TestParentDead: who has lost its parent before it starts, runs all the same.
func TestParentDead(t *testing.T) {
	t.Parallel()
	orphaned := `("$@" & ) ; read x`
	b := boot(t, nil, append([]string{"sh", "-c", orphaned, "sh", binary, "--parent-death-signal=TERM", "--"}, self("orphan")...)...)
	b.out.wait(t, "orphan")
	b.child()
	b.tell("")
	b.wants(0)
}

// TestSoak: signals and orphans without end leave nothing behind in us.
func TestSoak(t *testing.T) {
	t.Parallel()
	orphans := `(while :; do (: & : & : &); sleep 0.005; done) & exec "$@"`
	b := boot(t, nil, append([]string{"-d", "1", "--log-level=info", "--", "sh", "-c", orphans, "sh"}, self("catch")...)...)
	b.out.wait(t, "ready")
	pid := b.cmd.Process.Pid
	look := func() (fds []os.DirEntry, threads string, kib int) {
		fds, _ = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		return fds, status(pid, "Threads"), rss(pid)
	}
	kinds := slices.Collect(sig.Set(^uint64(0)).Without(unpassed).All)
	b.volleys(kinds, 20)
	fds, threads, kib := look()
	for end := time.Now().Add(*soak); time.Now().Before(end); {
		b.volleys(kinds, 20)
	}
	nowFds, nowThreads, nowKib := look()
	if len(fds) == 0 || len(nowFds) != len(fds) || nowThreads != threads || nowKib > kib+heap {
		t.Errorf("%d descriptors, %s threads, %d KiB; later %d, %s, %d", len(fds), threads, kib, len(nowFds), nowThreads, nowKib)
	}
	b.stopsInTime()
}
