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
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

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
	dir, worker := t.TempDir(), box.Helper("worker")
	programs := map[string][]string{"W": worker, "FILES": {dir}, "WORKER": {"python3", "-c", pythonWorker}}
	for name, text := range map[string]string{
		"script":       "#!/bin/sh\ntrue\n\"$@\"\n",
		"trapper":      "#!/bin/sh\ntrap 'kill $!' TERM\n\"$@\" &\nwait\n",
		"parent.py":    "import subprocess, sys\nsys.exit(subprocess.call(sys.argv[1:]))\n",
		"package.json": `{"name":"x","version":"1.0.0","scripts":{"start":"\"$WORKER\" helper worker"}}`,
		"Makefile":     "run:\n\t@\"$$WORKER\" helper worker\n",
		"reader.py": "import subprocess, sys\np = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n" +
			"for line in p.stdout: print(line, end='', flush=True)\n",
	} {
		programs[name] = []string{filepath.Join(dir, name)}
		testutil.Must(0, os.WriteFile(programs[name][0], []byte(text), 0o755))
	}
	for _, c := range box.Table(`
		case          | needs      | code | group | wrapper
		sh -c         |            | 143  | once  | sh -c 'true; "$@"; true' sh W
		a script      |            | 143  | once  | script W
		in background |            | 143  | once  | sh -c '"$@" & wait' sh W
		trap          |            | 6    |       | sh -c 'trap "kill \$!; wait \$!; exit 6" TERM; "$@" & wait' sh W
		pipe          |            | 143  |       | sh -c '"$@" BAR tee' sh W
		daemon        |            | 143  | once  | sh -c '("$@" &); exec tail -f /dev/null' sh W
		setsid        | setsid     | 143  | once  | sh -c 'setsid "$@" & wait' sh W
		another init  | tini       | 143  | once  | tini -- script W
		another init, which signals the group | dumb-init | 143 | once  | dumb-init -- sh -c 'setsid "$@" & wait' sh W
		npm           | npm        | 143  | once  | npm start --silent --prefix FILES
		make          | make       | 143  | once  | make -s -C FILES run
		python        | python3    | 0    | once  | python3 parent.py W
		reader        | python3    | 0    |       | python3 reader.py W
		two levels    |            | 143  | once  | sh -c 'sh -c "true; \"\$@\"; true" sh "$@"; true' sh W
		direct        |            | 0    | once  | W
		usual trap    |            | 143  |       | sh -c 'trap "kill \$!" TERM; "$@" & wait' sh W
		trap, exit    |            | 6    |       | sh -c 'trap "kill \$!; exit 6" TERM; "$@" & wait' sh W
		trap, kill 0  |            | 143  |       | sh -c 'trap "trap - TERM; kill 0" TERM; "$@" & wait' sh W
		tells nobody  |            | 6    |       | sh -c 'trap "exit 6" TERM; "$@" & wait' sh W
		a wrapper in a script |    | 143  |       | sh -c 'true; "$@"; true' sh trapper W
		signalfd      | catatonit  | 143  |       | catatonit -- script W
		handler out   | python3    | 143  | once  | sh -c 'true; "$@"; true' sh WORKER SIG_DFL
		then ignored  | python3    | 143  | once  | sh -c 'true; "$@"; true' sh WORKER SIG_IGN
		sigwait       | python3    | 143  |       | sh -c 'true; "$@"; true' sh WORKER sigwait
		sigwait in a thread | python3 | 143 | once  | sh -c 'true; "$@"; true' sh WORKER thread
	`) {
		c["env"] = "HOME=" + dir + " WORKER=" + worker[0]
		for _, flags := range []string{"", "--preset=auto --until=quiet --grace-period=30", "--group"} {
			code := c["code"]
			if flags == "--group" {
				code = "" // whichever is first
			}
			c["line"], c["session"] = "LAMEDUCK "+flags+" -- "+c["wrapper"], "up / TERM / clean / exits "+code+" / never TERM 2"
			if flags != "--group" || c["group"] == "once" {
				c.Play(t, programs)
			}
		}
	}
}

// TestTold: whom a stop signals, and whom it leaves alone.
func TestTold(t *testing.T) {
	box.Sessions(t, map[string][]string{"W": box.Helper("worker"), "WORKER": {"python3", "-c", pythonWorker}, "LEAVES": {"sh", "-c", leaves}}, `
	case | needs | line | session
	# A command that waits for a worker that nobody tells to end lasts until KILL, and the report says what is missing.
	nobody tells | python3 | LAMEDUCK --stop-schedule=TERM --grace-period=3s sh -c 'trap : TERM; "$@" & wait; wait' sh WORKER sigwait | up / TERM / err suggestion: nobody has told python3
	--group does | python3 | LAMEDUCK --stop-schedule=TERM --grace-period=30s --group sh -c 'trap : TERM; "$@" & wait; wait' sh WORKER sigwait | up / TERM / clean / exits 0
	# A member of the group that ignores the group's signal, as what a shell runs in the background ignores INT, has
	# not been asked to end: it gets TERM.
	in the background | | LAMEDUCK --group --stop-schedule=INT --grace-period=30 sh -c '"$@" & trap "exit 0" INT; wait' sh W | up / TERM / clean / exits 0
	# A process started after TERM, for the cleanup of a lingering process, gets no TERM, however many others end meanwhile.
	a cleanup | | LAMEDUCK --log-level=debug --linger=15 LEAVES | up / up / > / cleaning / err lingering: orphan / err lingering: orphan / > / exits 7 / cleaned
	`)
}

// leaves leaves a process that cleans up with another one.
const leaves = `
(trap 'sh -c "echo cleaning; read x; echo cleaned" <&3; exit' TERM; echo up; while :; do sleep 0.05; done) 3<&0 &
sh -c 'trap exit TERM; (trap "" TERM; echo up; while kill -0 $$; do sleep 0.01; done 2>/dev/null) & while :; do sleep 0.05; done' &
read x; exit 7`

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
	n.run()
}

// helpWorker is a program behind a wrapper.
func helpWorker([]string) { (&node{Name: "worker", Kinds: []string{"handles"}}).run() }

func (n *node) run() {
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
			end = time.After(100 * time.Millisecond) // the work to be done; a second TERM would come by then
		case <-end:
			fmt.Println(n.Name, "is clean")
			return
		}
	}
}

// newTree returns a random tree, below a command that does not handle TERM.
func newTree(random *rand.Rand) (root *node, all []*node) {
	root = &node{Name: "n0"}
	all = []*node{root}
	for i := 1; i < 4+random.IntN(7); i++ {
		n := &node{Name: fmt.Sprint("n", i), Kinds: []string{[]string{"handles", "handles", "handles", "ignores", ""}[random.IntN(5)]}}
		if n.is("handles") && random.IntN(3) == 0 {
			n.Kinds[0] = "tells"
		}
		for _, kind := range []string{"stopped", "session"} {
			if random.IntN(4) == 0 {
				n.Kinds = append(n.Kinds, kind)
			}
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
			flags := "--grace-period=30"
			if seed%4 == 3 {
				flags += " --group"
			}
			b := box.Setup{}.Boot(t, flags, root.helper()...)
			for _, n := range all {
				b.Out.Wait(n.Name + " up")
			}
			start := b.Stop()
			b.WaitExit()
			if took := time.Since(start); took > 29*time.Second {
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
