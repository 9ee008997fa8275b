package bench

import (
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// manyArguments is the number of arguments in the second measurement of a start.
const manyArguments = 20_000

// start measures the whole run of an empty command, under each contender:
// without arguments, and with many. Page faults are of a whole run of /bin/true,
// the program that people try first.
func (f figures) start(field []contender, nothing string, runs int) {
	turns(runs, field, func(c contender, counts bool) {
		took, usage := once(c, nothing)
		if counts {
			f.add(wall, c, micro(took))
			f.add(cpu, c, micro(time.Duration(usage.Utime.Nano()+usage.Stime.Nano())))
		}
	})
	turns(runs/20, field, func(c contender, counts bool) {
		_, usage := once(c, "/bin/true")
		if counts {
			f.add(faults, c, float64(usage.Minflt))
		}
	})
	words := append([]string{nothing}, slices.Repeat([]string{"argument"}, manyArguments)...)
	turns(runs/20, field, func(c contender, counts bool) {
		took, _ := once(c, words...)
		if counts {
			f.add(wallMany, c, micro(took))
		}
	})
}

// once runs command under c. The usage includes the command's.
func once(c contender, command ...string) (took time.Duration, usage unix.Rusage) {
	words := c.with(command...)
	before := time.Now()
	status, usage := wait(boot(words, null, os.Stderr))
	took = time.Since(before)
	if status != 0 {
		check(fmt.Errorf("a command that does nothing, under %s, ends with status %#x", c.name, status))
	}
	return took, usage
}
