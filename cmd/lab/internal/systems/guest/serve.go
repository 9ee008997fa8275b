package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exitCode is the server's after TERM.
const exitCode = 7

// status is the answer to the host: the number of HUP signals so far, and of orphans,
// zombies included.
type status struct {
	HUPs    int `json:"hups"`
	Orphans int `json:"orphans"`
}

var hups atomic.Int64

// serve answers requests until TERM, and then exits at once, with whatever request was
// about to answer.
func serve() error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				os.Exit(exitCode)
			}
			hups.Add(1)
		}
	}()
	made, err := makeOrphans()
	if err != nil {
		return err
	}
	http.HandleFunc("/", answer)
	http.HandleFunc("/signal", signalInit)
	http.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(status{int(hups.Load()), alive(made)})
	})
	return http.ListenAndServe(":8080", nil)
}

// answer takes as long as the request says.
func answer(w http.ResponseWriter, r *http.Request) {
	think, _ := time.ParseDuration(r.FormValue("think"))
	time.Sleep(think)
	fmt.Fprint(w, "served")
}

// signalInit sends PID 1 a signal. Thanks to handlers PID 1 gets even fatal
// signals.
func signalInit(_ http.ResponseWriter, r *http.Request) {
	unix.Kill(1, unix.SignalNum(r.FormValue("name")))
}

// makeOrphans has a child start processes to outlive the child, and returns their PIDs.
func makeOrphans() (pids []int, err error) {
	cmd := exec.Command("/guest", "orphans")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // until the last orphan has closed standard output
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, cmd.Wait()
}

// orphans starts processes that end with standard input, as soon as the present
// process is gone, and prints their PIDs.
func orphans() error {
	if len(os.Args) > 2 {
		io.Copy(io.Discard, os.Stdin)
		return nil
	}
	for range 20 {
		cmd := exec.Command("/guest", "orphans", "one")
		cmd.Stdout = os.Stdout
		if _, err := cmd.StdinPipe(); err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		fmt.Println(cmd.Process.Pid)
	}
	return nil
}

// alive counts the existing processes. A zombie exists until the parent has waited.
func alive(pids []int) (n int) {
	for _, pid := range pids {
		if unix.Kill(pid, 0) == nil {
			n++
		}
	}
	return n
}
