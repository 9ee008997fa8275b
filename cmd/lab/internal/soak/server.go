package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// serve is the command, an HTTP server on the port args[0]. TERM ends the command with 7, as
// long as the command is not deaf. Each line on standard input is an order, which may be a line
// of shell, and the answer to an order is a line on standard output.
func serve(args []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	if err != nil {
		return err
	}
	go http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	got := make(chan os.Signal, 1000)
	signal.Notify(got)
	orders := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			orders <- in.Text()
		}
		os.Exit(98) // the soak is gone
	}()
	fmt.Println("ready")
	deaf := false
	counts := map[syscall.Signal]int{} // of the signals that have arrived
	for {
		select {
		case s := <-got:
			if s == syscall.SIGTERM && !deaf {
				os.Exit(7)
			}
			counts[s.(syscall.Signal)]++
		case order := <-orders:
			switch order {
			case "exit":
				os.Exit(7)
			case "deaf", "signals":
				deaf = deaf || order == "deaf"
				text, _ := json.Marshal(counts)
				fmt.Println(string(text))
			default: // the shell's orphans are PID 1's, and do not disturb Run
				cmd := exec.Command("sh", "-c", order)
				cmd.Run()
				fmt.Println(cmd.ProcessState)
			}
		}
	}
}
