package e2e

import (
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

// Tests at the limits of processes, memory, arguments and descriptors.

// TestFullPids: from some moment on the pids cgroup is full, so lameduck can start neither
// a process nor a thread, not even for a write to a pipe whose reader has stopped reading.
// The number of threads that Go's runtime has and needs varies from run to run, hence the
// rounds.
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
	flags := []string{"-d", "1", "--until=quiet", "--quiet-for=0.5", "--log-level=debug", "--"} // the sampler needs a thread too
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
		if now, limit := group.get(t, "pids.current"), group.get(t, "pids.max"); now != limit {
			t.Errorf("the cgroup has %d of %d processes, want it full", now, limit)
		}
		if stuck {
			fillPipe(t, w)
		} else {
			go io.Copy(io.Discard, r)
		}
		b.forwardMany(1000)
	}
	fillAt("before the trigger")
	b.wantTermAfterHold(func() { fillAt("during the hold") })
	fillAt("after the stop signal")
	if now := status(b.cmd.Process.Pid, "Threads"); now != threads {
		t.Errorf("lameduck has %s threads after the stop signal, had %s", now, threads)
	}
	b.wantPromptExit()
}

// TestFullPidsBusy: a busy lameduck needs no new thread either. During the hold the loop
// handles real-time signals without a pause, the sampler samples, a checker asks the health
// listener, and the writer waits for a reader.
func TestFullPidsBusy(t *testing.T) {
	for round := range 4 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			group := newCgroup(t, "pids")
			url := fmt.Sprintf("127.0.0.1:%d", freePort())
			b := newBox(t, "stage:cgroup="+string(group), nil, "-d", "2", "--until=quiet", "--quiet-for=0.5", "--max-delay=3", "--grace-period=20",
				"--log-level=debug", "--termination-log=none", "--health="+url, "--", "sh", "-c", "trap '' 35 36; echo ready; exec sleep 100")
			_, w := pipeEnds(t, pipe)
			b.cmd.Stderr = w
			b.run()
			b.out.wait(t, "ready")
			fillPipe(t, w)
			group.set(t, "pids.max", group.get(t, "pids.current"))
			b.signal(sig.TERM)
			testutil.Eventually(t, "checks fail", func() bool { return getAnswer("http://"+url) == "503 stopping" })
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
				for i := range 200 {
					unix.Kill(b.cmd.Process.Pid, unix.Signal(35+i%2)) // EAGAIN: the queue is full
				}
				if got := getAnswer("http://" + url); got != "503 stopping" {
					t.Fatalf("the health listener answers %q, want 503", got)
				}
			}
			b.wantExit(143)
		})
	}
}

// TestSecondStagePids: if the limit of processes has room for lameduck and no room for the
// second stage of the start, lameduck exits with 125 and names the limit. The failure never
// passes for the command's exit code.
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
			refused++ // above this line are messages of Go's runtime
		case code == 125 && strings.Count(stderr, "\n") == 1: // no room for the fork
		case code == 0 && refused > 0:
			return
		case code == 0, limit > 100, strings.Contains(stderr, "lameduck:"): // otherwise lameduck itself found no room
			t.Fatalf("limit of %d processes: exit code %d after %d refusals, stderr: %s", limit, code, refused, stderr)
		}
	}
}

// forwardMany sends lameduck n signals, each after the command has received the previous
// signal. Lameduck logs them at the debug level.
func (b *box) forwardMany(n int) {
	b.t.Helper()
	already := len(b.out.all())
	for i := range n {
		b.signal(sig.WINCH)
		b.out.waitCount(b.t, already+i+1)
	}
}

// isRoot reports whether the test is root outside of user namespaces.
func isRoot() bool {
	ids, _ := os.ReadFile("/proc/self/uid_map")
	return os.Getuid() == 0 && slices.Equal(strings.Fields(string(ids)), []string{"0", "0", "4294967295"})
}

// TestForkBomb: the stop is in time beside a fork bomb, bounded by a cgroup or by the user's
// limit of processes. The test is not parallel, since the bomb takes the whole machine.
func TestForkBomb(t *testing.T) {
	t.Run("cgroup", func(t *testing.T) {
		group := newCgroup(t, "pids")
		group.set(t, "pids.max", 60)
		wantStopBesideBomb(t, "cgroup="+string(group))
	})
	t.Run("user", func(t *testing.T) {
		if isRoot() {
			wantStopBesideBomb(t, "nproc=60:60,uid=61234")
		} else {
			wantStopBesideBomb(t, "nproc=200:200") // every process of the test's user counts
		}
	})
}

// TestLeastAddressSpace: the address space that docs/install.md gives is enough, and 10 %
// less than the figure given as too little is too little.
func TestLeastAddressSpace(t *testing.T) {
	needs(t, "prlimit", "bash")
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the figure is for 64-bit processors")
	}
	least := fmt.Sprintf("--as=%d", limitFigure(t, `\(RLIMIT_AS\) of (\d+) MiB is enough`)<<20)
	for _, flags := range []string{"", "--until=quiet --grace-period=30 --health=127.0.0.1:9753"} {
		for _, script := range []string{`exec "$@"`, `trap "" INT; exec "$@"`} { // an ignored INT needs the second stage
			words := slices.Concat([]string{"bash", "-c", script, "bash", "prlimit", least, binary}, strings.Fields(flags), []string{"true"})
			for range 10 {
				commandOutput(t, nil, words...)
			}
		}
	}
	tooLittle := limitFigure(t, `less than some\s+(\d+) MiB is too little`) * 9 / 10
	if err := exec.Command("prlimit", fmt.Sprintf("--as=%d", tooLittle<<20), binary, "true").Run(); err == nil {
		t.Errorf("%d MiB of address space are enough; docs/install.md says too little", tooLittle)
	}
}

// TestLeastProcesses: the number of processes per user that docs/install.md gives is enough.
func TestLeastProcesses(t *testing.T) {
	needs(t, "prlimit", "setpriv", "bash")
	if !isRoot() {
		t.Skip("only root can run as a user without processes")
	}
	program := filepath.Join(testutil.Must(os.MkdirTemp("", "lameduck")), "lameduck") // a directory that every user may enter
	defer os.RemoveAll(filepath.Dir(program))
	testutil.Must(0, os.Chmod(filepath.Dir(program), 0o755))
	testutil.Must(0, os.WriteFile(program, testutil.Must(os.ReadFile(binary)), 0o755))
	few := limitFigure(t, `lameduck and its command need (\d+)`)
	more := limitFigure(t, `and (\d+) more with\s+a\s+hold`)
	staged := limitFigure(t, `signals needs (\d+)`)
	for i, c := range []struct {
		script string
		flags  []string
		least  int
	}{
		{`exec "$@"`, nil, few},
		{`exec "$@"`, []string{"--until=quiet", "--grace-period=30", "--health=127.0.0.1:9753"}, few + more},
		{`exec "$@"`, []string{"--until=quiet", "--grace-period=30", "--preset=auto"}, few + more},
		{`trap "" INT; exec "$@"`, nil, staged},
	} {
		uid := strconv.Itoa(61300 + i)
		for range 20 {
			limited := []string{"setpriv", "--reuid", uid, "--clear-groups", "prlimit", fmt.Sprintf("--nproc=%d", c.least), program}
			commandOutput(t, nil, slices.Concat([]string{"bash", "-c", c.script, "bash"}, limited, c.flags, []string{"true"})...)
		}
	}
}

// limitFigure returns the number in docs/install.md that the pattern's group matches.
func limitFigure(t *testing.T, pattern string) int {
	t.Helper()
	text := testutil.Must(os.ReadFile(testutil.Path("docs/install.md")))
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no match for %q in docs/install.md", pattern)
	}
	return testutil.Must(strconv.Atoi(string(found[1])))
}

func wantStopBesideBomb(t *testing.T, bound string) {
	b := bootStage(t, "stage:"+bound, nil, append([]string{"-d", "1", "--"}, helperCommand("sturdy")...)...)
	b.out.wait(t, "ready")
	b.sendLine("bomb")
	b.out.wait(t, "bombed")
	b.wantStop()
}

// TestOrphanStorm: lameduck reaps 100,000 orphans, and its memory does not grow by them.
// The test is not parallel, since the orphans take the whole machine.
func TestOrphanStorm(t *testing.T) {
	b := boot(t, nil, append([]string{"-d", "1", "--", "sh", "-c", `echo calm; read go; "$0"; exec "$@"`, orphanMaker(t)}, helperCommand("sturdy")...)...)
	b.out.wait(t, "calm")
	before := rss(b.cmd.Process.Pid)
	b.sendLine("go")
	b.out.wait(t, "ready")
	b.child()
	if after := rss(b.cmd.Process.Pid); before == 0 || after > before+heap {
		t.Errorf("lameduck has %d KiB of memory after the orphans, had %d KiB", after, before)
	}
	b.wantStop()
}

// TestPoor: a stop with a hold works in environments that lack files, privileges,
// descriptors or system calls.
func TestPoor(t *testing.T) {
	for name, stage := range map[string]string{
		"read-only root":          "read-only",
		"no environment":          "no-env",
		"no privileges":           "uid=65534",
		"a uid of nobody's":       "uid=1000660000",
		"no standard input":       "no-stdin",
		"no privileges, no /proc": "own-network,no-proc,uid=65534", // where no other test listens
		"few descriptors":         "nofile=4:16",
		"seccomp":                 "seccomp",
		"all of it":               "own-network,no-proc,read-only,no-env,ignore=CHLD,uid=65534,nofile=4:16,seccomp",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(stage, "uid") && !isRoot() {
				t.Skip("only root can change its uid")
			}
			b := bootStage(t, "stage:"+stage, nil, append([]string{"-d", "1", "--log-level=info", "--"}, trapCommand...)...)
			b.out.wait(t, "ready")
			b.wantStop()
			unobserved := ""
			if strings.Contains(stage, "no-proc,") && strings.Contains(stage, "uid") {
				unobserved = "the traffic could not be seen: "
			}
			stderr := b.err.all()
			if len(stderr) != 2 {
				t.Fatalf("stderr: %v, want two lines", stderr)
			}
			wantMatch(t, stderr[0].text, `TERM: holding 1 s`)
			wantMatch(t, stderr[1].text, `TERM: `+unobserved+`held 1\.0 s \(elapsed\), sent TERM, exited 7 at \+1\.\d s of 10 s \(assumed\)$`)
		})
	}
}

// TestMemory: the stop goes on while the memory cgroup is at its limit and the kernel's OOM
// killer kills other processes.
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

// maxStringLen is the kernel's limit for an argument or environment entry, MAX_ARG_STRLEN
// without the final NUL; see execve(2).
var maxStringLen = 32*os.Getpagesize() - 1

// argMax returns the kernel's limit for all arguments and the environment: a quarter of the
// stack's limit, at most three quarters of 8 MiB; see execve(2).
func argMax() int {
	var stack unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_STACK, &stack)
	return int(min(stack.Cur, 24<<20) / 4)
}

// fillArguments appends strings to list, an argument list or environment of the box, until
// about the given number of bytes of ARG_MAX are left.
func fillArguments(b *box, list []string, left int) []string {
	room := argMax() - left - len(b.cmd.Path) - 1
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

// TestLongArguments: arguments and environments as long as the kernel allows reach the
// command. If lameduck's own fit and the command's do not, lameduck exits with 126.
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
		dir := t.TempDir() // a path that makes the command's arguments longer than lameduck's
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
		b.wantOneLine(`cannot run "program": argument list too long`)
	})
}

// TestDescriptors: a limit of a few descriptors is enough, and the command gets the limit
// that lameduck had. With fewer, lameduck exits with 125 and says how many are needed.
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
