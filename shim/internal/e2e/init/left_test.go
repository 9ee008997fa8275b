package init_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// helpWorker is a program behind a wrapper: at its first TERM it cleans up for a third of a second,
// and at a second one it dies.
func helpWorker([]string) {
	got := make(chan os.Signal, 10)
	signal.Notify(got, syscall.SIGTERM)
	fmt.Println("up")
	<-got
	fmt.Println("cleaning")
	select {
	case <-got:
		fmt.Println("second TERM")
		os.Exit(9)
	case <-time.After(time.Second / 3): // the work to be done
		fmt.Println("clean")
	}
}

// pythonWorker is a worker whose handler is gone after the first TERM, as that of a signal.NotifyContext is, or
// of process.once, or that waits for TERM without a handler.
const pythonWorker = `
import os, signal, sys, threading, time
def work(*_):
    if sys.argv[1].startswith("SIG_"): signal.signal(signal.SIGTERM, getattr(signal, sys.argv[1]))
    os.write(1, b"cleaning\n"); time.sleep(0.3); os.write(1, b"clean\n")
    sys.exit()
def up(): os.write(1, b"up\n")
def wait():
    signal.sigwait([signal.SIGTERM]); work()
if sys.argv[1].startswith("SIG_"):
    signal.signal(signal.SIGTERM, work); up(); signal.pause()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
if sys.argv[1] == "thread":
    t = threading.Thread(target=wait); t.start(); up(); t.join()
elif os.fork() == 0: # says so when its parent waits
    while "sigtimedwait" not in open("/proc/%d/wchan" % os.getppid()).read(): pass
    up()
else: wait()
`

// TestWrappers: a program behind what usually stands in front of it can clean up, and gets TERM once;
// the exit code is the wrapper's.
func TestWrappers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"script":       "#!/bin/sh\ntrue\n\"$@\"\n",
		"trap":         "#!/bin/sh\ntrap 'kill $!' TERM\n\"$@\" &\nwait\n",
		"parent.py":    "import subprocess, sys\nsys.exit(subprocess.call(sys.argv[1:]))\n",
		"package.json": `{"name":"x","version":"1.0.0","scripts":{"start":"\"$WORKER\" helper worker"}}`,
		"Makefile":     "run:\n\t@\"$$WORKER\" helper worker\n",
		"reader.py": "import subprocess, sys\np = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n" +
			"for line in p.stdout: print(line, end='', flush=True)\n",
		"worker.py": pythonWorker,
	} {
		testutil.Must(0, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	for _, c := range box.Table(`
		case          | needs          | group | code | wrapper
		sh -c         |                | once  | 143  | sh -c 'true; "$@"; true' sh W
		script        |                | once  | 143  | ./script W
		in background |                | once  | 143  | sh -c '"$@" & wait' sh W
		trap          |                |       | 6    | sh -c 'trap "kill \$!; wait \$!; exit 6" TERM; "$@" & wait' sh W
		pipe          |                |       | 143  | sh -c '"$@" PIPE tee' sh W
		daemon        |                | once  | 143  | sh -c '("$@" &); exec tail -f /dev/null' sh W
		setsid        | setsid         | once  | 143  | sh -c 'setsid "$@" & wait' sh W
		another init  | tini           | once  | 143  | tini -- ./script W
		another init, which signals the group | dumb-init | once | 143 | dumb-init -- sh -c 'setsid "$@" & wait' sh W
		npm           | npm            | once  | 143  | npm start --silent
		make          | make           | once  | 143  | make -s run
		python        | python3        | once  | 0    | python3 parent.py W
		reader        | python3        |       | 0    | python3 reader.py W
		two levels    |                | once  | 143  | sh -c 'sh -c "true; \"\$@\"; true" sh "$@"; true' sh W
		direct        |                | once  | 0    | W
		usual trap    |                |       | 143  | sh -c 'trap "kill \$!" TERM; "$@" & wait' sh W
		trap, exit    |                |       | 6    | sh -c 'trap "kill \$!; exit 6" TERM; "$@" & wait' sh W
		trap, kill 0  |                |       | 143  | sh -c 'trap "trap - TERM; kill 0" TERM; "$@" & wait' sh W
		tells nobody  |                |       | 6    | sh -c 'trap "exit 6" TERM; "$@" & wait' sh W
		a wrapper in a script |        |       | 143  | sh -c 'true; ./trap "$@"; true' sh W
		signalfd      | catatonit      |       | 143  | catatonit -- ./script W
		handler out   | python3        | once  | 143  | sh -c 'true; python3 worker.py SIG_DFL; true'
		then ignored  | python3        | once  | 143  | sh -c 'true; python3 worker.py SIG_IGN; true'
		sigwait       | python3        |       | 143  | sh -c 'true; python3 worker.py sigwait; true'
		sigwait in a thread | python3  | once  | 143  | sh -c 'true; python3 worker.py thread; true'
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			if c["needs"] != "" {
				box.Needs(t, c["needs"])
			}
			worker := box.Helper("worker")
			var words []string
			for _, word := range box.Words(c["wrapper"]) {
				if word = strings.Replace(word, "PIPE", "|", 1); word == "W" {
					words = append(words, worker...)
				} else {
					words = append(words, word)
				}
			}
			flags := []string{"", "--preset=auto --until=quiet --grace-period=30"}
			if c["group"] == "once" {
				flags = append(flags, "--group")
			}
			for _, flags := range flags {
				s := box.Setup{Env: []string{"WORKER=" + worker[0], "HOME=" + dir}, Change: func(cmd *exec.Cmd) { cmd.Dir = dir }}
				b := s.Boot(t, flags, words...)
				b.Out.Wait("up")
				start := b.Stop()
				code := b.WaitExit()
				said := strings.Join(b.Out.Texts(), " ")
				limit := 5 * time.Second
				if c["case"] == "tells nobody" { // a thread of the worker's runtime may have run meanwhile
					limit = 20 * time.Second
				}
				if took := time.Since(start); !strings.Contains(said, "clean") || strings.Contains(said, "second") || took > limit {
					t.Errorf("%q: %v, %s; %v", flags, took, said, b.Err.All())
				}
				if !strings.HasSuffix(said, "clean") || fmt.Sprint(code) != c["code"] && !strings.Contains(flags, "group") {
					t.Errorf("%q: exit code %d, want %s: %s", flags, code, c["code"], said)
				}
			}
		})
	}
}

// TestUntold: a command that waits for a worker that nobody tells to end lasts until KILL, and the report says
// what is missing. With it, the worker is told.
func TestUntold(t *testing.T) {
	t.Parallel()
	box.Needs(t, "python3")
	worker := filepath.Join(t.TempDir(), "worker.py")
	testutil.Must(0, os.WriteFile(worker, []byte(pythonWorker), 0o644))
	words := []string{"sh", "-c", `trap : TERM; "$@" & wait; wait`, "sh", "python3", worker, "sigwait"}
	b := box.Boot(t, "--stop-schedule=TERM --grace-period=3s", words...)
	b.Out.Wait("up")
	b.Stop()
	b.Err.Wait("suggestion: nobody has told python3")
	b.Err.Wait("--group (LAMEDUCK_GROUP)")
	b = box.Boot(t, "--stop-schedule=TERM --grace-period=30s --group", words...)
	b.Out.Wait("up")
	b.Stop()
	b.Out.Wait("clean")
	b.WaitExit()
}

// node is a process of a random tree, and its words for the helper of that name.
//
//	handles   ends a moment after TERM, which it counts
//	tells     the same, and passes its first TERM on to its children
//	ignores   ignores TERM
//	stopped   has stopped itself
//	session   leads a session of its own
type node struct {
	Name     string
	Kinds    []string
	Children []*node
}

func (n *node) is(kind string) bool { return slices.Contains(n.Kinds, kind) }

// helper returns the command line of the process.
func (n *node) helper() []string {
	return box.Helper("node", string(testutil.Must(json.Marshal(n))))
}

// helpNode is a process of the tree.
func helpNode(args []string) {
	var n node
	box.Die(json.Unmarshal([]byte(args[0]), &n))
	got := make(chan os.Signal, 10)
	signal.Reset() // package sigcatch, which the tests import, catches signals
	switch {
	case n.is("handles"), n.is("tells"):
		signal.Notify(got, syscall.SIGTERM)
	case n.is("ignores"):
		signal.Ignore(syscall.SIGTERM)
	}
	if n.is("session") {
		unix.Setsid()
	}
	var children []*os.Process
	for _, child := range n.Children {
		words := child.helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Stdout = os.Stdout
		box.Die(cmd.Start())
		children = append(children, cmd.Process)
		go cmd.Wait()
	}
	fmt.Println(n.Name, "up")
	if n.is("stopped") {
		unix.Kill(unix.Getpid(), syscall.SIGSTOP)
	}
	terms, end := 0, (<-chan time.Time)(nil)
	for {
		if !n.is("handles") && !n.is("tells") {
			unix.Pause()
			continue
		}
		select {
		case <-got:
			terms++
			fmt.Println(n.Name, "TERM", terms)
			for _, child := range children {
				if n.is("tells") && terms == 1 {
					child.Signal(syscall.SIGTERM)
				}
			}
			end = time.After(100 * time.Millisecond) // a second TERM would come by then
		case <-end:
			return
		}
	}
}

// newTree returns a random tree, below a command that does not handle TERM.
func newTree(random *rand.Rand) (root *node, all []*node) {
	root = &node{Name: "n0"}
	all = []*node{root}
	for i := 1; i < 4+random.IntN(7); i++ {
		n := &node{Name: fmt.Sprint("n", i)}
		switch random.IntN(5) {
		case 0, 1, 2:
			n.Kinds = append(n.Kinds, "handles")
		case 3:
			n.Kinds = append(n.Kinds, "ignores")
		}
		if n.is("handles") && random.IntN(3) == 0 {
			n.Kinds[0] = "tells"
		}
		if random.IntN(4) == 0 {
			n.Kinds = append(n.Kinds, "stopped")
		}
		if random.IntN(4) == 0 {
			n.Kinds = append(n.Kinds, "session")
		}
		parent := all[random.IntN(len(all))]
		parent.Children = append(parent.Children, n)
		all = append(all, n)
	}
	return root, all
}

// TestTrees: of a random tree of processes, each that handles TERM gets TERM once, from lameduck or from its
// parent, with --group too, and the stop is over before the end of the grace period.
func TestTrees(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			root, all := newTree(rand.New(rand.NewPCG(seed, 7)))
			flags := "--grace-period=12"
			if seed%4 == 3 {
				flags += " --group"
			}
			b := box.Boot(t, flags, root.helper()...)
			for _, n := range all {
				b.Out.Wait(n.Name + " up")
			}
			start := b.Stop()
			b.WaitExit()
			if took := time.Since(start); took > 11*time.Second {
				t.Errorf("the stop took %v", took)
			}
			for _, n := range all {
				once, twice := b.Out.Count(n.Name+" TERM 1") == 1, b.Out.Count(n.Name+" TERM 2") > 0
				if once != (n.is("handles") || n.is("tells")) || twice {
					t.Errorf("%v: %s got TERM: %v, twice: %v; %v", root.helper(), n.Name, once, twice, b.Out.All())
				}
			}
		})
	}
}

// TestGroupIgnores: a member of the group that ignores the group's signal, as what a shell runs in the
// background ignores INT, has not been asked to end: it gets TERM.
func TestGroupIgnores(t *testing.T) {
	t.Parallel()
	words := append([]string{"sh", "-c", `"$@" & trap "exit 0" INT; wait`, "sh"}, box.Helper("worker")...)
	b := box.Boot(t, "--group --stop-schedule=INT --grace-period=30", words...)
	b.Out.Wait("up")
	b.Stop()
	b.WantExit(0)
	b.Out.Wait("clean")
}
