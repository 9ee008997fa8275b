package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// serve is the command: on the port that it is given it answers each line with
// "pong", it leaves with 7 on TERM, and it does what standard input says and then
// answers with a line.
func serve(args []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	die(err)
	go func() {
		for {
			conn, err := listener.Accept()
			die(err)
			go func() {
				defer conn.Close()
				for in := bufio.NewScanner(conn); in.Scan(); fmt.Fprintln(conn, "pong") {
				}
			}()
		}
	}()
	var deaf atomic.Bool
	var counts sync.Map // of each signal
	got := make(chan os.Signal, 1000)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT)
	go func() {
		for s := range got {
			if s == syscall.SIGTERM && !deaf.Load() {
				os.Exit(7)
			}
			n, _ := counts.LoadOrStore(s, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
	}()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "exit":
			os.Exit(7)
		case "deaf":
			deaf.Store(true)
			fmt.Println("deaf")
		case "signals": // how many have come, of each kind
			said := "signals"
			counts.Range(func(s, n any) bool {
				said += fmt.Sprintf(" %d=%d", s, n.(*atomic.Int64).Load())
				return true
			})
			fmt.Println(said)
		case "orphans": // so many times a hundred
			fmt.Println(run([]string{"sh", "-c", strings.Replace(breeder, "N", words[1], 1)}))
		default:
			fmt.Println(run(words))
		}
	}
	os.Exit(98) // who gave the commands is gone
}

// breeder leaves a hundred orphans behind, N times.
const breeder = "i=0; while [ $i -lt N ]; do (j=0; while [ $j -lt 100 ]; do : & j=$((j+1)); done); i=$((i+1)); done"

// run runs a program to its end, or to a TERM after its first line where "watch" is
// among the words; and is how it ended.
func run(words []string) string {
	cmd := exec.Command(words[0], words[1:]...)
	if len(words) > 1 && words[1] == "watch" {
		out, err := cmd.StdoutPipe()
		die(err)
		die(cmd.Start())
		bufio.NewReader(out).ReadString('\n')
		cmd.Process.Signal(syscall.SIGTERM)
	} else {
		die(cmd.Start())
	}
	// What it leaves behind is PID 1's. That must not take it from us.
	cmd.Wait()
	return fmt.Sprint("ran ", cmd.ProcessState)
}
