package soak

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

// serve is the command. The server on the port args[0] answers each line with "pong".
// TERM ends the command with 7. Each line on standard input is an order, and the answer
// to an order is a line on standard output.
func serve(args []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	if err != nil {
		return err
	}
	go acceptAll(listener)
	var c command
	c.catch()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		c.obey(strings.Fields(in.Text()))
	}
	os.Exit(98) // the soak is gone
	return nil
}

func acceptAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for in := bufio.NewScanner(conn); in.Scan(); fmt.Fprintln(conn, "pong") {
			}
		}()
	}
}

// command counts the signals that arrive.
type command struct {
	deaf   atomic.Bool // TERM is counted and does not end the command
	counts sync.Map    // signal to *atomic.Int64
}

func (c *command) catch() {
	got := make(chan os.Signal, 1000)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT)
	go func() {
		for s := range got {
			if s == syscall.SIGTERM && !c.deaf.Load() {
				os.Exit(7)
			}
			n, _ := c.counts.LoadOrStore(s, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
	}()
}

// obey carries out one order: exit, deaf, signals, orphans N (hundreds), or a program
// to run.
func (c *command) obey(words []string) {
	switch words[0] {
	case "exit":
		os.Exit(7)
	case "deaf":
		c.deaf.Store(true)
		fmt.Println("deaf")
	case "signals":
		fmt.Println(c.signals())
	case "orphans":
		fmt.Println(run([]string{"sh", "-c", strings.Replace(breeder, "N", words[1], 1)}))
	default:
		fmt.Println(run(words))
	}
}

// signals returns "signals NUMBER=COUNT ...".
func (c *command) signals() string {
	text := "signals"
	c.counts.Range(func(s, n any) bool {
		text += fmt.Sprintf(" %d=%d", s, n.(*atomic.Int64).Load())
		return true
	})
	return text
}

// breeder leaves a hundred orphans behind, N times.
const breeder = "i=0; while [ $i -lt N ]; do (j=0; while [ $j -lt 100 ]; do : & j=$((j+1)); done); i=$((i+1)); done"

// run runs a program to the end, or, where "watch" is the second word, to a TERM after
// the first line. The orphans of the program are PID 1's and must not disturb Wait.
func run(words []string) string {
	cmd := exec.Command(words[0], words[1:]...)
	if len(words) < 2 || words[1] != "watch" {
		cmd.Run()
		return fmt.Sprint("ran ", cmd.ProcessState)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Sprint("ran ", err)
	}
	bufio.NewReader(out).ReadString('\n')
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	return fmt.Sprint("ran ", cmd.ProcessState)
}
