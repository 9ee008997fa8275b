package observe

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestMain runs the tests in a new network namespace. As "helper look PORT" the test binary
// is the program measured by the benchmark.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "helper" && os.Args[2] == "look" {
		if err := looker(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "helper:", err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	netns.Main(m, 0)
}

// usual is the configuration behind the times in tests.
var usual = traffic.Config{QuietFor: 3 * time.Second, MaxSilence: 30 * time.Second, Poll: 250 * time.Millisecond}

// config is the configuration of a hold until silence on a port.
func config(start time.Time, port uint16) Config {
	return Config{Start: start, Traffic: usual, Ports: []uint16{port}, Gate: stop.Gate{Until: stop.Quiet}}
}

// looker takes a sample, as in a hold, for each line of standard input, and prints the
// number of sockets and the nanoseconds taken. The benchmark, in another module, runs
// looker as a program.
func looker(port string) error {
	runtime.GOMAXPROCS(1) // like lameduck
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	s := newSampler(config(time.Now(), uint16(number)), nil)
	s.scan()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		start := time.Now()
		s.sample(start)
		fmt.Println(s.observer.sockets, time.Since(start).Nanoseconds())
	}
	return in.Err()
}
