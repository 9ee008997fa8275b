package truth

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// Roles are the programs of the table, by the first argument.
var Roles = map[string]func(args []string) error{"stage": stage, "serve": serve, "play": play}

// Run plays the cases of args, and writes the table to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.list {
		for _, c := range o.cases {
			fmt.Fprintln(out, c.name)
		}
		return nil
	}
	dir := os.Getenv(inside)
	if dir == "" {
		return enter()
	}
	if err := netns.MountProc(); err != nil {
		return err
	}
	return runAll(ctx, o, dir, out)
}

// inside is set in the process in new namespaces; the value is the
// folder for temporary files.
const inside = "LAMEDUCK_TRUTH_INSIDE"

// enter runs the program again as PID 1 of new namespaces, so that no process outlives
// the table.
func enter() error {
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-truth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some servers run as another user
		return err
	}
	spaces := netns.Namespaces{Flags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Env: inside + "=" + dir}
	code, err := spaces.Reenter()
	if code != 0 {
		os.RemoveAll(dir)
		os.Exit(code) // the process inside has printed why
	}
	return err
}

// serve is a server of the laboratory.
func serve(args []string) error {
	switch args[0] {
	case "raw":
		return serveRaw(append(args, "")[1])
	case "web":
		return serveWeb(args[1:])
	case "noport":
		return serveNoPort(args[1], args[2])
	case "smtp":
		return serveSMTP(duration(args[1]))
	case "grpc":
		return serveGRPC(args[1:])
	}
	return serveHTTP(args[0])
}

// result is the output of a trial for the table.
type result struct {
	moments
	FirstLost string        // a moment and an error
	Message   string        // lameduck's
	Stalled   time.Duration // the longest time that the machine stood still; see stalls.longest
	Err       string
	Kept      *keptTally // nil without such clients
}

// play plays one trial: args are the name of a case, lameduck and a folder.
func play(args []string) error {
	c := find(args[0])
	if c == nil {
		return fmt.Errorf("no case %q", args[0])
	}
	if err := netns.MountProc(); err != nil {
		return err
	}
	t := newTrial(c)
	t.lameduck, t.dir = args[1], args[2]
	watch := watchStalls(c.precise)
	err := t.play()
	r := t.result()
	r.Stalled = watch.longest(t.term.Add(r.Signal))
	if err != nil {
		r.Err = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// result returns the findings of the trial.
func (t *trial) result() *result {
	r := &result{}
	said := readReport(t.terminationLog())
	if final := lastReport([]byte(t.said.String())); final != nil {
		said = final
	}
	if said == nil {
		r.Err = "lameduck reports no signal:\n" + t.said.String()
		return r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.E, r.L = t.c.window(t.last)
	r.Signal = t.sent.Sub(t.term) + said.signal()
	r.moments.Lost, r.moments.MayCut = len(t.lost), t.c.mayCut
	if len(t.lost) > 0 {
		r.FirstLost = t.lost[0]
	}
	r.Message = said.Message
	if t.kept.Requests > 0 {
		r.Kept = &t.kept
	}
	if t.c.reason != "" && said.Ended != t.c.reason {
		r.Err = fmt.Sprintf("the hold ended by %q, want %q: %s", said.Ended, t.c.reason, said.Message)
	}
	return r
}

// folder makes a folder for a trial.
func folder(dir string, number int) (string, error) {
	path := filepath.Join(dir, fmt.Sprint(number))
	return path, os.Mkdir(path, 0o755)
}
