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

// status is what the host asks for: how many HUP signals have come, and how many
// orphans are still there, zombies included.
type status struct {
	HUPs    int `json:"hups"`
	Orphans int `json:"orphans"`
}

var hups atomic.Int64

// serve answers requests until TERM, and then exits at once, with whatever it was
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

// signalInit sends PID 1 a signal. The handlers of PID 1 let it have even those that
// would end it.
func signalInit(_ http.ResponseWriter, r *http.Request) {
	unix.Kill(1, unix.SignalNum(r.FormValue("name")))
}

// makeOrphans has a child start processes that outlive it, and returns their PIDs.
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
	for lines.Scan() { // until the last orphan has closed its standard output
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, cmd.Wait()
}

// orphans starts processes that end when their standard input does, which is when this
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

// alive counts the processes that are there. A zombie is there until its parent has
// waited for it.
func alive(pids []int) (n int) {
	for _, pid := range pids {
		if unix.Kill(pid, 0) == nil {
			n++
		}
	}
	return n
}
