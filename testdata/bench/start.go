package main

import (
	"fmt"
	"os"
	"time"
)

// start runs a command that does nothing under each contender.
func (f figures) start(field []contender, nothing string, runs int) {
	turns(runs, field, func(c contender, counts bool) {
		words := c.with(nothing)
		before := time.Now()
		status, usage := wait(boot(words, null, os.Stderr))
		took := time.Since(before)
		if status != 0 {
			check(fmt.Errorf("a command that does nothing, under %s, ends with status %#x", c.name, status))
		}
		if counts {
			f.add(wall, c, micro(took))
			f.add(cpu, c, micro(time.Duration(usage.Utime.Nano()+usage.Stime.Nano())))
		}
	})
}
