// Fuzz runs all fuzz targets of the module, a few at a time, each for the same
// time, and says in a line what each came to.
//
//	fuzz [-for=60s] [-at-once=8]
//
// It exits with 1 if one fails; the line then names the file of what made it fail,
// which "go test" tries from then on.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// target is a fuzz test and its package.
type target struct{ name, pkg string }

func main() {
	length := flag.Duration("for", time.Minute, "how long each is run")
	atOnce := flag.Int("at-once", 8, "how many are run at a time")
	flag.Parse()
	targets, err := find()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
	slots := make(chan struct{}, *atOnce)
	var failed []string
	var mu sync.Mutex // the lines are written by all
	var all sync.WaitGroup
	for _, t := range targets {
		slots <- struct{}{}
		all.Go(func() {
			line, ok := t.run(*length)
			mu.Lock()
			defer mu.Unlock()
			if fmt.Println(line); !ok {
				failed = append(failed, t.name)
			}
			<-slots
		})
	}
	all.Wait()
	if len(failed) > 0 || len(targets) == 0 {
		fmt.Fprintf(os.Stderr, "fuzz: %d of %d targets failed: %s\n", len(failed), len(targets), strings.Join(failed, " "))
		os.Exit(1)
	}
}

// find lists the targets.
func find() (targets []target, err error) {
	cmd := exec.Command("go", "test", "-json", "-list=^Fuzz", "./...")
	cmd.Stderr = os.Stderr
	out, failed := cmd.Output()
	var complaints strings.Builder
	for in := json.NewDecoder(strings.NewReader(string(out))); in.More(); {
		var event struct{ Action, Package, Output string }
		if err := in.Decode(&event); err != nil {
			return nil, fmt.Errorf("cannot read the list of targets: %w", err)
		}
		if name := strings.TrimSpace(event.Output); strings.HasPrefix(name, "Fuzz") {
			targets = append(targets, target{name, event.Package})
		}
		if event.Action == "build-output" {
			complaints.WriteString(event.Output)
		}
	}
	if failed != nil {
		return nil, fmt.Errorf("cannot list the targets: %w\n%s", failed, complaints.String())
	}
	return targets, nil
}

var (
	progress = regexp.MustCompile(`execs: (\d+).*new interesting: (\d+)`)
	crasher  = regexp.MustCompile(`Failing input written to (\S+)`)
)

// run runs it, and is what to say of it.
func (t target) run(length time.Duration) (line string, ok bool) {
	// Making an interesting input smaller could take all of the time.
	cmd := exec.Command("go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+length.String(), "-fuzzminimizetime=1s", "-parallel=1", t.pkg)
	text, err := cmd.CombinedOutput()
	line = fmt.Sprintf("%-16s %-32s", t.name, shorten(t.pkg))
	if all := progress.FindAllStringSubmatch(string(text), -1); len(all) > 0 {
		last := all[len(all)-1]
		line += fmt.Sprintf(" %9s executions %5s new interesting", last[1], last[2])
	}
	if err == nil {
		return line, true
	}
	if found := crasher.FindStringSubmatch(string(text)); found != nil {
		line += "  FAILED: " + shorten(t.pkg) + "/" + found[1]
	} else {
		line += "  FAILED: " + err.Error()
	}
	return line + "\n" + string(text), false
}

// shorten is a package's folder.
func shorten(pkg string) string {
	parts := strings.SplitN(pkg, "/", 4)
	return parts[len(parts)-1]
}
