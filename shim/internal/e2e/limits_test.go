package e2e

import (
	"bytes"
	"debug/elf"
	le "encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// At the limits of what there is: processes, memory, arguments, descriptors.

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
		for end := time.Now().Add(testutil.Patience); os.Remove(dir) != nil && time.Now().Before(end); {
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
	text := testutil.Must(os.ReadFile(filepath.Join(string(c), name)))
	return testutil.Must(strconv.Atoi(strings.TrimSpace(string(text))))
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
	flags := []string{"-d", "1", "--until=quiet", "--quiet-for=0.5", "--log-level=debug", "--"} // the watcher must do with the threads there are
	b := newBox(t, fmt.Sprintf("stage:%scgroup=%s", stage, group), nil, append(flags, helperCommand("sturdy")...)...)
	r, w := pipeEnds(t, pipe)
	b.cmd.Stderr = w
	b.run()
	b.out.wait(t, "ready")
	threads := status(b.cmd.Process.Pid, "Threads")
	group.set(t, "pids.max", group.get(t, "pids.current")+20)
	fillAt := func(moment string) {
		if moment != when {
			return
		}
		b.sendLine("fill")
		b.out.wait(t, "full")
		if now, most := group.get(t, "pids.current"), group.get(t, "pids.max"); now != most {
			t.Errorf("%d of %d processes: not full", now, most)
		}
		if stuck {
			fillPipe(t, w)
		} else {
			go io.Copy(io.Discard, r)
		}
		b.busy(1000)
	}
	fillAt("before the trigger")
	b.wantTermAfterHold(func() { fillAt("during the hold") })
	fillAt("after the stop signal")
	if now := status(b.cmd.Process.Pid, "Threads"); now != threads {
		t.Errorf("%s threads, later %s", threads, now)
	}
	b.wantPromptExit()
}

// TestSecondStagePids: where the limit of processes leaves room for lameduck and not
// for the second stage of the start, that is a start error in words, never the command's
// exit code.
func TestSecondStagePids(t *testing.T) {
	group := newCgroup(t, "pids")
	refused := 0
	for limit := 6; ; limit++ {
		group.set(t, "pids.max", limit)
		script := fmt.Sprintf("echo $$ >%s/cgroup.procs; trap '' INT; exec %s --log-level=debug true", group, binary)
		cmd := exec.Command("sh", "-c", script)
		out, _ := cmd.CombinedOutput()
		code := cmd.ProcessState.ExitCode()
		stderr := string(out)
		switch {
		case code == 125 && strings.HasSuffix(stderr, "raise the limit of processes (pids.max, RLIMIT_NPROC), if there is one\n"):
			refused++ // Go's runtime has said more before
		case code == 125 && strings.Count(stderr, "\n") == 1: // no room for the fork
		case code == 0 && refused > 0:
			return
		case code == 0, limit > 100, strings.Contains(stderr, "lameduck:"): // else lameduck itself found no room
			t.Fatalf("%d processes: left with %d, %d refused before; stderr %s", limit, code, refused, stderr)
		}
	}
}

// busy has lameduck pass n signals one by one, and write of each.
func (b *box) busy(n int) {
	b.t.Helper()
	already := len(b.out.all())
	for i := range n {
		b.signal(sig.WINCH)
		b.out.waitCount(b.t, already+i+1)
	}
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

// TestLeastAddressSpace: docs/limits.md says how little address space is enough.
func TestLeastAddressSpace(t *testing.T) {
	needs(t, "prlimit", "bash")
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the figure is for 64 bits")
	}
	least := fmt.Sprintf("--as=%d", limitFigure(t, `\(RLIMIT_AS\) of (\d+) MiB is enough`)<<20)
	for _, flags := range []string{"", "--until=quiet --grace-period=30 --health=127.0.0.1:9753"} {
		for _, script := range []string{`exec "$@"`, `trap "" INT; exec "$@"`} { // the second one needs a second stage
			words := slices.Concat([]string{"bash", "-c", script, "bash", "prlimit", least, binary}, strings.Fields(flags), []string{"true"})
			for range 10 {
				output(t, nil, words...)
			}
		}
	}
	tooLittle := limitFigure(t, `less than some\s+(\d+) MiB is too little`) * 9 / 10
	if err := exec.Command("prlimit", fmt.Sprintf("--as=%d", tooLittle<<20), binary, "true").Run(); err == nil {
		t.Errorf("%d MiB are enough, too", tooLittle)
	}
}

// TestLeastProcesses: docs/limits.md says how few processes of a user are enough.
func TestLeastProcesses(t *testing.T) {
	needs(t, "prlimit", "setpriv", "bash")
	if !isRoot() {
		t.Skip("needs a user without processes")
	}
	program := filepath.Join(testutil.Must(os.MkdirTemp("", "lameduck")), "lameduck") // where any user may go
	defer os.RemoveAll(filepath.Dir(program))
	testutil.Must(0, os.Chmod(filepath.Dir(program), 0o755))
	testutil.Must(0, os.WriteFile(program, testutil.Must(os.ReadFile(binary)), 0o755))
	few := limitFigure(t, `lameduck and its command need (\d+)`)
	more := limitFigure(t, `and (\d+) more with\s+.--health`)
	staged := limitFigure(t, `signals (\d+) are needed`)
	for i, c := range []struct {
		script string
		flags  []string
		least  int
	}{
		{`exec "$@"`, nil, few},
		{`exec "$@"`, []string{"--until=quiet", "--grace-period=30", "--health=127.0.0.1:9753"}, few + more},
		{`trap "" INT; exec "$@"`, nil, staged},
	} {
		uid := strconv.Itoa(61300 + i)
		for range 20 {
			limited := []string{"setpriv", "--reuid", uid, "--clear-groups", "prlimit", fmt.Sprintf("--nproc=%d", c.least), program}
			output(t, nil, slices.Concat([]string{"bash", "-c", c.script, "bash"}, limited, c.flags, []string{"true"})...)
		}
	}
}

// limitFigure is the figure in docs/limits.md that the pattern finds.
func limitFigure(t *testing.T, pattern string) int {
	t.Helper()
	text := testutil.Must(os.ReadFile(testutil.Path("docs/limits.md")))
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("docs/limits.md does not say %q", pattern)
	}
	return testutil.Must(strconv.Atoi(string(found[1])))
}

func bombed(t *testing.T, bound string) {
	b := bootStage(t, "stage:"+bound, nil, append([]string{"-d", "1", "--"}, helperCommand("sturdy")...)...)
	b.out.wait(t, "ready")
	b.sendLine("bomb")
	b.out.wait(t, "bombed")
	b.wantStop()
}

// breeder is a program that has 100 000 orphans: a thousand times a child that
// leaves a hundred behind. What it runs in is as small as can be, since that is
// what a fork takes its time for.
func orphanMaker(t *testing.T) (path string) {
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
	b := boot(t, nil, append([]string{"-d", "1", "--", "sh", "-c", `echo calm; read go; "$0"; exec "$@"`, orphanMaker(t)}, helperCommand("sturdy")...)...)
	b.out.wait(t, "calm")
	before := rss(b.cmd.Process.Pid)
	b.sendLine("go")
	b.out.wait(t, "ready")
	b.child()
	if after := rss(b.cmd.Process.Pid); before == 0 || after > before+heap {
		t.Errorf("%d KiB, later %d", before, after)
	}
	b.wantStop()
}

// TestPoor: places that give a program little.
func TestPoor(t *testing.T) {
	for name, stage := range map[string]string{
		"read-only root":          "read-only",
		"no environment":          "no-env",
		"no privileges":           "uid=65534",
		"a uid of nobody's":       "uid=1000660000",
		"no standard input":       "no-stdin",
		"no privileges, no /proc": "no-proc,uid=65534",
		"few descriptors":         "nofile=4:16",
		"seccomp":                 "seccomp",
		"all of it":               "no-proc,read-only,no-env,ignore=CHLD,uid=65534,nofile=4:16,seccomp",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(stage, "uid") && !isRoot() {
				t.Skip("only root can change its uid")
			}
			b := bootStage(t, "stage:"+stage, nil, append([]string{"-d", "1", "--log-level=info", "--"}, trapCommand...)...)
			b.out.wait(t, "ready")
			b.wantStop()
			blindly := ""
			if strings.Contains(stage, "no-proc,") && strings.Contains(stage, "uid") {
				blindly = "the traffic could not be seen; "
			}
			for i, want := range []string{"TERM: holding 1 s", "TERM: held 1.0 s (elapsed); " + blindly + "sent TERM at +1.0 s; the command exited 7"} {
				if stderr := b.err.all(); len(stderr) != 2 || !strings.Contains(stderr[i].text, want) {
					t.Errorf("stderr: %v, want %q", stderr, want)
				}
			}
		})
	}
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
	b := bootStage(t, "stage:cgroup="+string(group), nil, append([]string{"-d", "1", "--", "sh", "-c", greedy, "sh"}, helperCommand("hog")...)...)
	hogs := func(n int) {
		b.out.waitUntil(t, "more hogs killed", func() bool { return countLines(b.out.collected, "hog 137") >= n })
	}
	hogs(3)
	b.wantTermAfterHold(func() { hogs(6) })
	hogs(9)
	b.wantPromptExit()
}

// The kernel's limits of what a program can be given: of one string, and of all.
var maxStringLen = 32*os.Getpagesize() - 1

func argMax() int {
	var stack unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_STACK, &stack)
	return int(min(stack.Cur, 24<<20) / 4)
}

// stuffed appends strings to list, until what is left of ARG_MAX for the whole
// box is but little.
func fillArguments(b *box, list []string, little int) []string {
	room := argMax() - little - len(b.cmd.Path) - 1
	for _, word := range slices.Concat(b.cmd.Args, b.cmd.Env) {
		room -= len(word) + 1 + 8
	}
	for room > 100 {
		word := fmt.Sprintf("N%02d=%s", len(list), strings.Repeat("x", min(room-9, maxStringLen)-4))
		list = append(list, word)
		room -= len(word) + 1 + 8
	}
	return list
}

// TestLongArguments: as much as the kernel lets anybody have, and a command
// that cannot be given as much as we were.
func TestLongArguments(t *testing.T) {
	trapping := append([]string{"-d", "1", "--"}, trapCommand...)
	t.Run("arguments", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "stage", nil, trapping...)
		before := len(b.cmd.Args)
		b.cmd.Args = fillArguments(b, b.cmd.Args, 4096)
		b.run()
		b.out.wait(t, fmt.Sprintf("ready %d %d", len(b.cmd.Args)-before, maxStringLen))
		b.wantStop()
	})
	t.Run("environment", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "stage", nil, "-d", "1", "--", "sh", "-c", `echo ${#N02} $(env | grep -c '^N'); `+trapCommand[2])
		b.cmd.Env = fillArguments(b, b.cmd.Env, 4096)
		b.run()
		b.out.wait(t, fmt.Sprintf("%d %d", maxStringLen-4, len(b.cmd.Env)-2)) // PATH and GORACE
		b.wantStop()
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
		b.cmd.Args = fillArguments(b, b.cmd.Args, 1024)
		b.run()
		b.wantExit(126)
		if stderr := b.err.all(); len(stderr) != 1 || !strings.Contains(stderr[0].text, `cannot run "program": argument list too long`) {
			t.Errorf("stderr: %v", stderr)
		}
	})
}

// waiter is a program that waits for ever. Unlike all others it needs no
// descriptor to be loaded.
func pauseProgram(t *testing.T) (path string) {
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
		b := bootStage(t, "stage:nofile=3:16", nil, "-d", "1", "--", pauseProgram(t))
		var limits string
		testutil.Eventually(t, "the command's limit is 3 of 16", func() bool {
			if pids := children(b.cmd.Process.Pid); len(pids) == 1 {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pids[0]))
				limits = string(text)
			}
			return regexp.MustCompile(`Max open files +3 +16 `).MatchString(limits)
		})
		b.signal(sig.TERM)
		b.wantExit(143)
	})
	for hard := 3; hard <= 12; hard++ {
		t.Run(fmt.Sprintf("%d of %d", hard, hard), func(t *testing.T) {
			t.Parallel()
			b := bootStage(t, fmt.Sprintf("stage:nofile=%d:%d", hard, hard), nil, "sh", "-c", "exit 7")
			code, stderr := b.waitExit(), b.err.all()
			if code == 125 && len(stderr) == 1 && strings.Contains(stderr[0].text, "file descriptors are needed") {
				return
			}
			if hard <= 6 || code != 7 {
				t.Errorf("exit code %d; stderr:\n%v", code, stderr)
			}
		})
	}
}
