package truth

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// freeze stops the processes of the server with words in the command line, with STOP.
// lameduck's command line has the server's inside, and is passed over.
func (t *trial) freeze(words string) {
	frozen := 0
	for _, path := range must(filepath.Glob("/proc/[0-9]*/cmdline")) {
		text, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		line := strings.ReplaceAll(string(text), "\x00", " ")
		if pid > 1 && pid != t.cmd.Process.Pid && strings.Contains(line, words) {
			t.check(syscall.Kill(pid, syscall.SIGSTOP))
			frozen++
		}
	}
	if frozen == 0 {
		t.check(fmt.Errorf("no process of the server is called %q", words))
	}
}

// must returns the value of a call. An error would be a mistake in the program.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
