package observe

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// looker takes a sample, as in a hold, for each line of standard input, and prints the
// number of sockets and the nanoseconds taken. The benchmark, in another module, runs
// looker as a program.
func looker(port string) error {
	runtime.GOMAXPROCS(1) // like lameduck
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	s := newSampler(Config{Start: time.Now(), Traffic: usual, Ports: []uint16{uint16(number)}, Gate: stop.Gate{Until: stop.Quiet}}, nil)
	s.scan(time.Now())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		start := time.Now()
		s.sample(start)
		fmt.Println(s.observer.sockets, time.Since(start).Nanoseconds())
	}
	return in.Err()
}
