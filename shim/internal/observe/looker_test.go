package observe

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// looker takes a look, as a hold does, for each line of standard input, and says
// how many sockets it saw and how many nanoseconds it took. It is for
// lab bench, which cannot come in here.
func looker(port string) error {
	runtime.GOMAXPROCS(1) // as lameduck has
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	cfg := traffic.Config{QuietFor: 3 * time.Second, MaxSilence: 30 * time.Second, Poll: 250 * time.Millisecond}
	w := newSampler(Config{Start: time.Now(), Traffic: cfg, Ports: []uint16{uint16(number)}, Until: stop.Quiet})
	w.open(w.cfg.Ports)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		start := time.Now()
		w.sample(start)
		fmt.Println(w.count, time.Since(start).Nanoseconds())
	}
	return in.Err()
}
